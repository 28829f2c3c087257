// Package holdfast coordinates Go services through Redis: reentrant locks whose leases are renewed while their
// holder lives, whose waiters are woken by messages and end with their contexts, and whose holders learn of a loss.
//
// # Who excludes whom
//
// Two acquisitions of a name exclude each other unless the second one's context comes from the first one's
// hold: the argument of Do's function, or Hold.Context. The context is what a thread id is in Java: acquiring
// the same name with it re-enters; a plain second Lock(ctx) waits like anybody else's.
//
//	client, err := holdfast.New(rdb)
//	…
//	err = client.Mutex("orders:42").Do(ctx, func(ctx context.Context) error {
//		return charge(ctx, 42) // ctx ends if the lock is lost
//	})
//
// # What is promised
//
// At most one owner believes that it holds a mutex at once, as long as Redis keeps what it acknowledged and its
// clock does not jump: every hold has a local deadline that comes before the server's. A holder learns of a
// loss before anybody else is granted: Hold.Done closes, contexts end with ErrLost. When Redis loses data
// (FLUSHALL, eviction, a failover that missed writes, restart without persistence), or after ForceRelease, the old
// holder learns within a third of its lease and one renewal; a resource that checks the fencing token (Hold.Token)
// stays safe meanwhile.
//
// # Documents
//
// In docs: concepts.md (leases, fencing, re-entry), operations.md (servers, rights, sizing), reliability.md (what goes
// wrong, and the test that shows what happens then), performance.md, protocol.md, migrating.md and faq.md.
//
// # Reading the source
//
// internal/scripts has the four Lua scripts that are the protocol; internal/turnstile the waiting; watchdog the
// renewing; pubsub the waking; internal/tenure the deadlines; docs/protocol.md the rules and why they hold.
package holdfast
