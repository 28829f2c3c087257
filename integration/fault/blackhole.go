package fault

// Direction says which way data flows.
type Direction int

// Directions of a Blackhole.
const (
	ToClient Direction = 1 << iota
	ToServer
	Both = ToClient | ToServer
)

// ConnInfo describes a connection through the proxy.
type ConnInfo struct {
	ID         int    // counts from 1 in the order of arrival
	RemoteAddr string // of the client
	Subscribed bool   // it has sent SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE
}

// Everyone picks every connection.
func Everyone(ConnInfo) bool { return true }

// Subscribers picks connections that have subscribed to something. With
// ToServer the SUBSCRIBE itself disappears as well.
func Subscribers(c ConnInfo) bool { return c.Subscribed }

type blackhole struct {
	direction Direction
	match     func(ConnInfo) bool
}

// Blackhole makes data that flows in the given direction disappear, on all
// connections that match, present and future, until Heal. Nothing is closed,
// and a close is not passed on either: each side is left with a half-open
// connection. A reply or request is judged when it would be forwarded. Several
// black holes add up. The match function must not call the proxy.
//
// After Heal subscribed connections carry on; on the others see the package
// comment: those that lost something stay dead until they are closed.
func (p *Proxy) Blackhole(d Direction, match func(ConnInfo) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackholes = append(p.blackholes, blackhole{d, match})
}

// swallows reports whether data of c in direction d disappears. The channel is
// closed by the next Heal.
func (p *Proxy) swallows(d Direction, c ConnInfo) (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.blackholes {
		if b.direction&d != 0 && b.match(c) {
			return true, p.healed
		}
	}
	return false, p.healed
}
