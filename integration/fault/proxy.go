package fault

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy in front of one Redis server. Without rules it only
// forwards. Safe for concurrent use.
type Proxy struct {
	upstream string
	listener net.Listener
	done     chan struct{} // closed by close: drop everything and return
	wg       sync.WaitGroup

	mu         sync.Mutex // guards what follows
	rules      []*Rule
	blackholes []blackhole
	healed     chan struct{} // closed and replaced by Heal
	refuse     bool
	links      map[*link]struct{} // also those whose client has left but whose commands still run
	lastID     int
	closed     bool
}

// NewProxy starts a proxy to the server at upstream on a loopback port of its
// own. When the test ends it closes all connections, commands still held back
// are discarded, and its goroutines have ended.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("fault: %v", err)
	}
	p := &Proxy{
		upstream: upstream,
		listener: listener,
		done:     make(chan struct{}),
		healed:   make(chan struct{}),
		links:    make(map[*link]struct{}),
	}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut closes all client connections. What they have sent and the proxy still
// holds is executed nevertheless, just as a packet on its way arrives.
func (p *Proxy) Cut() {
	for _, l := range p.snapshot() {
		_ = l.client.Close()
	}
}

// Refuse turns the refusal of new connections on or off; those that exist are
// left alone. A refused client sees its connection reset.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Heal removes all rules and black holes and accepts connections again.
// Commands and replies already held back keep their delay.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.blackholes, p.refuse = nil, nil, false
	close(p.healed)
	p.healed = make(chan struct{})
}

// Conns lists the connections in the order of their arrival. One whose client
// has left is listed until the server has answered what it sent.
func (p *Proxy) Conns() []ConnInfo {
	var infos []ConnInfo
	for _, l := range p.snapshot() {
		infos = append(infos, l.info())
	}
	slices.SortFunc(infos, func(a, b ConnInfo) int { return a.ID - b.ID })
	return infos
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // close has closed the listener
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	if p.refuses() {
		_ = client.(*net.TCPConn).SetLinger(0) // reset, not a polite end of file
		_ = client.Close()
		return
	}
	server, err := net.DialTimeout("tcp", p.upstream, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	l := newLink(p, client, server)
	if !p.register(l) {
		l.closeBoth()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuse
}

// register makes l visible to Cut and close; false means it came too late.
func (p *Proxy) register(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.lastID++
	l.id = p.lastID
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) snapshot() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.done)
	_ = p.listener.Close()
	for _, l := range p.snapshot() {
		l.closeBoth()
	}
	p.wg.Wait()
}

// sleepUntil returns false if the proxy is closed first.
func (p *Proxy) sleepUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.done:
		return false
	}
}
