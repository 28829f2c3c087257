package scripts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Status is the answer to an acquire.
type Status int64

// The answers of acquire.lua.
const (
	Held    Status = 1
	Waiting Status = 2
	Busy    Status = 0
	Refused Status = -1 // the owner has ended: a tombstone
	Lost    Status = -2 // a re-entry found no hold
)

const (
	holderField = "h:"        // and the owner
	slack       = time.Second // that a key outlives its last deadline
)

// Acquire is a call of acquire.lua.
type Acquire struct {
	Key              string
	Owner            tenure.Owner
	Weight, Capacity int64
	Depth            int
	Lease            time.Duration
	Window           time.Duration // 0: do not wait
	Claim            time.Duration
	Busy             bool // others use the name, as far as is known: the short way is not looked for
	Acks             Acks // a hold that is not acknowledged by so many replicas is a failure
}

// Acquired is its answer.
type Acquired struct {
	Status  Status
	Token   int64         // of the hold
	Earlier bool          // the hold was given before this run of the script
	Seq     int64         // the last token given on this name
	ExpIn   time.Duration // until the earliest deadline among the holders; 0: unknown
	Waiting int           // tickets in the queue
	Ticket  int64         // number of the caller's ticket
	Head    bool          // that ticket is the head of the queue
	More    bool          // the queue was not served to the end: send it again
}

func (c *Caller) acquire(a *Acquire) *call {
	s := newCall(&acquireScript, a.Key)
	s.word().add(holderField).owner(a.Owner)
	lone := s.word()
	if a.Depth == 1 && !a.Busy {
		lone.number(a.Weight).add(" 1 +").number(millis(a.Lease)).add(" ")
	}
	s.word().number(millis(a.Lease + slack))
	s.word().numbers(a.Weight, a.Capacity, int64(a.Depth), millis(a.Lease), millis(a.Window), millis(a.Claim)).add(c.inboxes)
	return s
}

func acquired(reply string, f *Failure) (Acquired, *Failure) {
	r, f := numbers(reply, f)
	if f != nil {
		return Acquired{}, f
	}
	if Status(r[0]) == Held && r[3] == 0 {
		r[3] = r[1]
	}
	return Acquired{
		Status: Status(r[0]), Token: r[1], Earlier: r[1] < r[2]*1000, Seq: r[3], ExpIn: time.Duration(r[4]) * time.Millisecond,
		Waiting: int(r[5]), Ticket: r[6], Head: r[7] == 0, More: r[8] == 1,
	}, nil
}

// Acquire makes one attempt.
func (c *Caller) Acquire(ctx context.Context, a Acquire) (Acquired, *Failure) {
	s := c.acquire(&a)
	defer s.free()
	if a.Acks.Replicas == 0 {
		return acquired(c.run(ctx, s))
	}
	replies, failures, short := c.runAcked(ctx, []*call{s}, a.Acks)
	answer, f := acquired(replies[0], failures[0])
	if f == nil && answer.Status == Held && short != nil {
		return Acquired{}, short
	}
	return answer, f
}

// AcquireAll makes one attempt for each, in the given order, in one write. It waits for no acknowledgements.
func (c *Caller) AcquireAll(ctx context.Context, as []Acquire) ([]Acquired, []*Failure) {
	calls := make([]*call, len(as))
	for i := range as {
		calls[i] = c.acquire(&as[i])
	}
	replies, failures := c.runAll(ctx, calls)
	answers := make([]Acquired, len(as))
	for i := range as {
		answers[i], failures[i] = acquired(replies[i], failures[i])
		calls[i].free()
	}
	return answers, failures
}

// Release is a call of release.lua.
type Release struct {
	Key    string
	Owner  tenure.Owner
	Depth  int           // what is left; 0 ends the hold or the wait
	Weight int64         // what is left with Depth > 0
	Tomb   time.Duration // how long later requests of the owner are refused
	Token  int64         // the highest base of a token that the hold handed out
	Busy   bool          // others use the name, or did, as far as is known: the short way is not looked for
	Force  bool          // remove every holder
	Next   *Acquire      // the client's next waiter, queued if this very run ended the hold
}

// Released is its answer.
type Released struct {
	Ended   bool  // this run ended the hold or the level
	Left    bool  // this run removed a ticket
	Seq     int64 // the last token given before the grants of this run
	Ticket  int64 // of Next, 0 if it was not queued
	Waiting int   // tickets in the queue
	More    bool  // grants were left: send it again
}

func (c *Caller) release(r *Release) *call {
	s := newCall(&releaseScript, r.Key)
	s.word().add(holderField).owner(r.Owner)
	alone, force := int64(0), int64(0)
	if r.Force {
		force = 1
	} else if r.Depth == 0 && r.Tomb == 0 && r.Next == nil && !r.Busy {
		alone = 1
	}
	s.word().number(alone)
	s.word().numbers(int64(r.Depth), max(r.Weight, 1), millis(r.Tomb), r.Token, force).add(c.inboxes)
	if n := r.Next; n != nil {
		s.word().owner(n.Owner)
		s.word().numbers(n.Weight, n.Capacity, millis(n.Claim)).number(millis(n.Window))
	}
	return s
}

func released(reply string, f *Failure) (Released, *Failure) {
	r, f := numbers(reply, f)
	if f != nil {
		return Released{}, f
	}
	return Released{Ended: r[0] == 1, Left: r[0] == 2, Seq: r[1], Ticket: r[3], Waiting: int(r[4]), More: r[5] == 1}, nil
}

// Release makes one attempt.
func (c *Caller) Release(ctx context.Context, r Release) (Released, *Failure) {
	s := c.release(&r)
	defer s.free()
	return released(c.run(ctx, s))
}

// Inspect reads a name's hash and the server's clock. Nothing is written.
func (c *Caller) Inspect(ctx context.Context, key string) (now time.Time, fields map[string]string, f *Failure) {
	values, err := c.read(ctx, "evalsha", inspectScript.hash, key)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		values, err = c.read(ctx, "eval", inspectScript.text, key)
	}
	if err != nil {
		return time.Time{}, nil, c.failed(ctx, err)
	}
	if len(values) < 2 || len(values)%2 != 0 {
		return time.Time{}, nil, malformed(len(values))
	}
	sec, _ := strconv.ParseInt(values[0], 10, 64)
	usec, _ := strconv.ParseInt(values[1], 10, 64)
	fields = make(map[string]string, len(values)/2)
	for i := 2; i < len(values); i += 2 {
		fields[values[i]] = values[i+1]
	}
	return time.Unix(sec, usec*1000), fields, nil
}

// read runs a script that writes nothing: go-redis may send it as often as it likes.
func (c *Caller) read(ctx context.Context, verb string, script any, key string) ([]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, verb, script, one, key)
	cmd.SetStepCount(oneKey)
	_ = c.rdb.Process(ctx, cmd)
	return cmd.Result()
}

// reply is the numbers that a script answered; those missing at the end are 0.
type reply [9]int64

// numbers reads a reply, and makes sure that it has the expected shape: a proxy or a fork may answer anything.
func numbers(s string, f *Failure) (r reply, _ *Failure) {
	if f != nil {
		return r, f
	}
	n := 0
	for field := range strings.SplitSeq(s, " ") {
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n == len(r) {
			return r, malformed(s)
		}
		r[n] = v
		n++
	}
	return r, nil
}

func malformed(what any) *Failure {
	return &Failure{Unknown: true, err: fmt.Errorf("redis answered a script with %.80q: is this a Redis?", fmt.Sprint(what))}
}
