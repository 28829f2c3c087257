package fault

import (
	"slices"
	"sync/atomic"
	"time"
)

type action int

const (
	dropReply action = iota
	dropReplyAndClose
	delayRequest
	delayReply
	count
)

// Rule is one fault in force, and its counters. Safe for concurrent use.
type Rule struct {
	proxy    *Proxy
	action   action
	delay    time.Duration
	match    Match
	left     int // commands it still applies to, negative for all; guarded by proxy.mu
	hits     atomic.Int64
	answered atomic.Int64
}

// Hits returns how many commands the rule has applied to so far. A command is
// counted when the proxy has read it, before the server sees it.
func (r *Rule) Hits() int { return int(r.hits.Load()) }

// Answered returns how many of those the server has executed and answered,
// whether or not the client was told.
func (r *Rule) Answered() int { return int(r.answered.Load()) }

// Remove ends the rule for commands still to come.
func (r *Rule) Remove() {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.proxy.rules = slices.DeleteFunc(r.proxy.rules, func(other *Rule) bool { return other == r })
}

// DropReplies swallows the replies to the next n commands that match, all of
// them if n is negative. The server executes the command; the client waits on
// a connection that stays open and stays silent. This and all other rules about
// replies spare subscribed connections, where a reply cannot be told from a
// message; there use Blackhole.
func (p *Proxy) DropReplies(n int, match Match) *Rule { return p.add(dropReply, n, 0, match) }

// DropRepliesAndClose is DropReplies, but closes the client's connection in
// place of the reply, that is, after the command was executed.
func (p *Proxy) DropRepliesAndClose(n int, match Match) *Rule {
	return p.add(dropReplyAndClose, n, 0, match)
}

// DelayRequests holds the next n commands that match back for d, all of them
// if n is negative; what the same connection sends later queues behind. A
// command is forwarded even if the client has hung up or was Cut off meanwhile.
func (p *Proxy) DelayRequests(n int, d time.Duration, match Match) *Rule {
	return p.add(delayRequest, n, d, match)
}

// DelayReplies holds the replies to the next n commands that match back for d,
// all of them if n is negative; later replies on the same connection queue
// behind. The server executes the commands at once.
func (p *Proxy) DelayReplies(n int, d time.Duration, match Match) *Rule {
	return p.add(delayReply, n, d, match)
}

// Count only counts the commands that match.
func (p *Proxy) Count(match Match) *Rule { return p.add(count, -1, 0, match) }

func (p *Proxy) add(a action, n int, d time.Duration, match Match) *Rule {
	r := &Rule{proxy: p, action: a, delay: d, match: match, left: n}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// fate is what the rules in force make of one command.
type fate struct {
	rules        []*Rule
	delayRequest time.Duration
	delayReply   time.Duration
	drop, hangUp bool
}

// judge applies every counter that matches cmd, and of each other action the
// oldest rule that matches and is not used up.
func (p *Proxy) judge(cmd []string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	var f fate
	var taken [count]bool
	for _, r := range p.rules {
		if r.left == 0 || r.action != count && taken[r.action] || !r.match(cmd) {
			continue
		}
		if r.action != count {
			taken[r.action] = true
		}
		if r.left > 0 {
			r.left--
		}
		r.hits.Add(1)
		f.rules = append(f.rules, r)
		f.apply(r)
	}
	return f
}

func (f *fate) apply(r *Rule) {
	switch r.action {
	case dropReply:
		f.drop = true
	case dropReplyAndClose:
		f.drop, f.hangUp = true, true
	case delayRequest:
		f.delayRequest = r.delay
	case delayReply:
		f.delayReply = r.delay
	}
}
