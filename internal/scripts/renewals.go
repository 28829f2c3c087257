package scripts

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Renew is one renewal by renew.lua.
type Renew struct {
	Key    string
	Owner  tenure.Owner
	Lease  time.Duration
	Token  int64 // as the server gave it
	Base   int64 // the highest base of a token that the hold handed out
	Weight int64
	Depth  int
	Acks   Acks // fewer are a failure
}

// RenewalOf is the renewal of a tenure for a full lease, as it stands now.
func RenewalOf(t *tenure.Tenure) Renew {
	depth, weight, base := t.Standing()
	tenant, terms := t.Tenant(), t.Terms
	_, key := tenant.Lock()
	return Renew{
		Key: key, Owner: tenant.Identity(), Lease: terms.Lease, Token: t.Token(), Base: base, Weight: weight, Depth: depth,
		Acks: Acks{Replicas: terms.Replicas, Timeout: terms.ReplicaTimeout},
	}
}

// Renewed is the answer to it.
type Renewed struct {
	Held    bool
	Token   int64 // as the server gave it
	Now     int64 // the server's clock in ms
	Waiting int   // tickets in the queue
}

// renewal is one run of renew.lua, or of renewals.lua for several.
func renewal(rs []Renew) *call {
	s := newRenewal(rs)
	for i := range rs {
		r := &rs[i]
		s.word().add(holderField).owner(r.Owner)
		s.word().number(r.Weight).add(" ").number(int64(max(r.Depth, 1))).add(" +").number(millis(r.Lease)).add(" ").number(r.Token)
		s.word().number(millis(r.Lease + slack))
		if base := s.word(); r.Base > r.Token {
			base.number(r.Base)
		}
	}
	return s
}

// renewed reads the reply to rs.
func renewed(rs []Renew, text string, f *Failure, answers []Renewed, failures []*Failure) {
	now, lines, _ := strings.Cut(text, "\n")
	us, err := strconv.ParseInt(now, 10, 64)
	if f == nil && (err != nil || strings.Count(lines, "\n") != len(rs)-1) {
		f = malformed(text)
	}
	for i := range rs {
		if failures[i] = f; f != nil {
			continue
		}
		var line string
		line, lines, _ = strings.Cut(lines, "\n")
		answers[i] = Renewed{Held: true, Token: rs[i].Token, Now: us / 1000}
		if why, failed := strings.CutPrefix(line, "-"); failed {
			failures[i] = NewFailure(refused(why))
			continue
		}
		switch line {
		case "1": // as expected
		case "0":
			answers[i].Held = false
		default:
			var r reply
			if r, failures[i] = numbers(line, nil); failures[i] == nil {
				answers[i].Token, answers[i].Waiting = r[1], int(r[2])
			}
		}
	}
}

// refused is what Redis answered for one of several names.
type refused string

// Error implements error.
func (r refused) Error() string { return string(r) }

// RedisError implements redis.Error.
func (refused) RedisError() {}

// RenewAll makes one attempt for each, in one write, over connections that users' blocking commands do not use up.
// With acknowledgements asked for, all keys must live on one node.
func (c *Caller) RenewAll(ctx context.Context, rs []Renew) ([]Renewed, []*Failure) {
	answers, failures := make([]Renewed, len(rs)), make([]*Failure, len(rs))
	if _, single := c.rdb.(*redis.Client); single && !c.apart.Load() {
		c.renewAll(ctx, rs, len(rs), answers, failures)
		if len(rs) == 1 || slices.ContainsFunc(failures, func(f *Failure) bool { return f == nil || f.Transient || f.Unknown }) {
			return answers, failures
		}
		// Refused, all of them. What is behind this address may be a Cluster, or a proxy with rules for scripts.
		defer func() { c.apart.Store(slices.Contains(failures, nil)) }()
	}
	c.renewAll(ctx, rs, 1, answers, failures)
	return answers, failures
}

// renewAll renews so many in one run of the script.
func (c *Caller) renewAll(ctx context.Context, rs []Renew, together int, answers []Renewed, failures []*Failure) {
	calls := make([]*call, 0, len(rs)/together)
	var acks Acks
	for some := range slices.Chunk(rs, together) {
		calls = append(calls, renewal(some))
		for i := range some {
			acks = Acks{max(acks.Replicas, some[i].Acks.Replicas), max(acks.Timeout, some[i].Acks.Timeout)}
		}
	}
	var replies []string
	var failed []*Failure
	var short *Failure
	if acks.Replicas == 0 {
		replies, failed = c.runAll(ctx, calls)
	} else {
		replies, failed, short = c.runAcked(ctx, calls, acks)
	}
	for i, call := range calls {
		from, to := i*together, (i+1)*together
		renewed(rs[from:to], replies[i], failed[i], answers[from:to], failures[from:to])
		call.free()
	}
	for i := range rs {
		if failures[i] == nil && answers[i].Held && short != nil && short.acks < rs[i].Acks.Replicas {
			failures[i] = &Failure{err: short.err, Transient: true, Unknown: true}
		}
	}
}
