package fault

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// backlog is how many requests, and how many replies, one connection may have
// waiting inside the proxy before it stops reading.
const backlog = 1024

// link is one client connection and its connection to the server. Each
// direction has a goroutine that reads and judges, and one that waits and
// writes, so that delays count from arrival even within a pipeline.
type link struct {
	p              *Proxy
	id             int
	client, server net.Conn
	requests       chan request  // closed by readRequests: the client has left
	replies        chan reply    // closed by readReplies: the server has left
	gone           chan struct{} // closed by readReplies, too
	progress       chan struct{} // of capacity 1: something was answered

	mu         sync.Mutex // guards what follows
	subscribed bool
	pending    []fate // of commands forwarded but not answered, oldest first
}

type request struct {
	raw  []byte
	due  time.Time
	fate fate
	// answered: the server will reply in band. Not so to commands on a
	// subscribed connection, whose replies are messages of their own.
	answered bool
}

type reply struct {
	raw          []byte
	due          time.Time
	drop, hangUp bool
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{
		p: p, client: client, server: server,
		requests: make(chan request, backlog),
		replies:  make(chan reply, backlog),
		gone:     make(chan struct{}),
		progress: make(chan struct{}, 1),
	}
}

// run returns when both connections are closed and all four goroutines ended.
func (l *link) run() {
	var wg sync.WaitGroup
	wg.Go(l.readRequests)
	wg.Go(l.forwardRequests)
	wg.Go(l.readReplies)
	wg.Go(l.forwardReplies)
	wg.Wait()
}

func (l *link) closeBoth() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (l *link) info() ConnInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ConnInfo{ID: l.id, RemoteAddr: l.client.RemoteAddr().String(), Subscribed: l.subscribed}
}

func (l *link) readRequests() {
	defer close(l.requests)
	r := bufio.NewReader(l.client)
	for {
		raw, words, err := readCommand(r)
		if err != nil {
			return
		}
		req := request{raw: raw, due: time.Now()}
		if len(words) > 0 {
			req.answered = l.expectReply(words)
			req.fate = l.p.judge(words)
			req.due = req.due.Add(req.fate.delayRequest)
		}
		select {
		case l.requests <- req:
		case <-l.p.done:
			return
		}
	}
}

var isSubscribe = Command("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE")

// expectReply notes a subscription and reports whether cmd gets a reply that
// can be told from a message.
func (l *link) expectReply(cmd []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribed = l.subscribed || isSubscribe(cmd)
	return !l.subscribed
}

// forwardRequests ends after the client has left, but not before the server
// has executed what the client had sent: nobody can take back a packet.
func (l *link) forwardRequests() {
	defer func() { _ = l.server.Close() }()
	deaf := false
	for req := range l.requests {
		if !l.p.sleepUntil(req.due) {
			continue // the proxy closes: only drain
		}
		info := l.info()
		if swallowed, _ := l.p.swallows(ToServer, info); swallowed {
			deaf = deaf || !info.Subscribed
			continue
		}
		if deaf {
			continue
		}
		if req.answered {
			l.push(req.fate)
		}
		if _, err := l.server.Write(req.raw); err != nil {
			_ = l.client.Close() // ends readRequests, and so this loop
		}
	}
	for l.unanswered() {
		select {
		case <-l.progress:
		case <-l.gone:
			return
		case <-l.p.done:
			return
		}
	}
	l.awaitHeal(ToServer)
}

func (l *link) readReplies() {
	defer close(l.gone)
	defer close(l.replies)
	r := bufio.NewReader(l.server)
	for {
		raw, err := readReply(r)
		if err != nil {
			return
		}
		rep := reply{raw: raw, due: time.Now()}
		if !isPush(raw) {
			f := l.pop()
			rep.due = rep.due.Add(f.delayReply)
			rep.drop, rep.hangUp = f.drop, f.hangUp
		}
		select {
		case l.replies <- rep:
		case <-l.p.done:
			return
		}
	}
}

func (l *link) forwardReplies() {
	defer func() { _ = l.client.Close() }()
	mute := false
	for rep := range l.replies {
		if !l.p.sleepUntil(rep.due) {
			continue
		}
		info := l.info()
		swallowed, _ := l.p.swallows(ToClient, info)
		switch {
		case rep.hangUp:
			mute = true
			_ = l.client.Close()
		case rep.drop:
			mute = true
		case swallowed:
			mute = mute || !info.Subscribed
		case !mute:
			_, _ = l.client.Write(rep.raw) // if it has left, the rest is drained
		}
	}
	l.awaitHeal(ToClient)
}

// awaitHeal keeps the end of one side from the other while data in that
// direction disappears.
func (l *link) awaitHeal(d Direction) {
	for {
		swallowed, healed := l.p.swallows(d, l.info())
		if !swallowed {
			return
		}
		select {
		case <-healed:
		case <-l.p.done:
			return
		}
	}
}

func (l *link) push(f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, f)
}

// pop returns the fate of the oldest unanswered command. Replies on a
// subscribed connection belong to none.
func (l *link) pop() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return fate{}
	}
	f := l.pending[0]
	l.pending = l.pending[1:]
	for _, r := range f.rules {
		r.answered.Add(1)
	}
	select {
	case l.progress <- struct{}{}:
	default:
	}
	return f
}

func (l *link) unanswered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) > 0
}
