// Package explorer searches the protocol for mistakes: it runs the real Lua of package scripts, on a small
// Redis of its own whose clock is set by hand, and plays every interleaving of a few clients that follow
// the protocol's client rules, with lost replies, requests that run late, pushes that arrive late, crashes,
// cancelled waits, stalls of the server, a flush, a forced release and a full memory.
//
// A Scope bounds what happens. Explore visits all its states, breadth first, so that the trace of a
// violation is as short as can be; Walk takes random ways through a scope that is too large for that. What
// must hold in every state:
//
//   - who believes that it holds does, on the server, and together they hold no more than there is;
//   - what is stored agrees with itself, outlives every deadline in it, and says what the reply said;
//   - tokens grow: of two grants all tokens of the older one are smaller than all of the younger one, those too that a client
//     hands out while it passes its tenure on, whenever that is, whether or not the server ever hears of them, and
//     whether or not it has lost its data or was forced; only where its clock goes back they may not;
//   - waiters are served in the order of their tickets, and only the dead are passed over;
//   - nothing is left of an owner that is over;
//   - from here, if nothing else goes wrong, everybody is served in bounded time and the key vanishes.
//
// A tick of a scope is 100 ms for the scripts; their own constants (how fast the clock of the tickets may
// run, how long a key outlives its last deadline) are brought down to a tick, by editing the text. Margins
// are zero: the rules are checked to the tick.
//
// Not explored: clocks that run at different rates, replicas and failover, more than one name. That the server's clock
// went back is seen only in tokens that are ahead of it, and in what brings them back.
//
//	go test ./internal/explorer                  # the beginning of every scope, and whether bugs are found
//	go test ./internal/explorer -explore=60s     # every scope for up to a minute, or HOLDFAST_EXPLORE=60s
package explorer
