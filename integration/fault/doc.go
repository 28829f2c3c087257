// Package fault makes networks and servers fail on purpose.
//
// A Proxy sits between a client and a real server and understands enough of
// RESP to act on single commands and their replies: it loses a reply whose
// command was executed, executes a command long after its sender has gone,
// turns a connection half-open, or cuts it.
//
//	proxy := fault.NewProxy(t, srv.Addr())
//	lost := proxy.DropReplies(1, fault.All(fault.Script(), fault.ArgContains("orders")))
//	...
//	// lost.Answered() == 1: the server did run it; the client cannot know.
//
// TCP never loses the middle of a stream. So once a reply has been swallowed,
// the client gets no later one on that connection either, and once a request
// has been, the server sees no later one; otherwise each later reply would pass
// for the answer to the command before it. Subscribed connections are exempt:
// their messages answer nothing.
package fault
