package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/scripts"
)

// lua is the scripts' sources by name, as they are sent to Redis.
type lua map[string]string

func sources() lua {
	l := lua{}
	for _, name := range []string{acquireScript, releaseScript, renewScript} {
		l[name] = scripts.Source(name)
	}
	return l
}

// replace returns a copy with old replaced by new wherever it occurs.
func (l lua) replace(t testing.TB, old, new string) lua {
	t.Helper()
	edited, found := lua{}, false
	for name, text := range l {
		found = found || strings.Contains(text, old)
		edited[name] = strings.ReplaceAll(text, old, new)
	}
	if !found {
		t.Fatalf("no script contains %q", old)
	}
	return edited
}

// subject is one name that the real scripts act on, in virtual time: TIME is replaced by two more keys, which no
// script touches, and PUBLISH by RPUSH to a list. How long the key is to live is kept here between the steps, so that
// virtual time counts for that as well.
type subject struct {
	rdb      *redis.Client
	sha      map[string]string
	key, log string
	ttl      int64 // ms the key has left; 0: there is none
	at       int64 // ms of virtual time at which that was so
}

// loadScripts returns the hashes of the scripts with virtual time.
func loadScripts(t testing.TB, rdb *redis.Client, l lua) map[string]string {
	t.Helper()
	l = l.replace(t, "redis.call('TIME')", "{ KEYS[2], KEYS[3] }")
	l = l.replace(t, "redis.pcall('PUBLISH', ", "redis.call('RPUSH', KEYS[4], ")
	hashes := map[string]string{}
	for name, text := range l {
		sha, err := rdb.ScriptLoad(context.Background(), text).Result()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		hashes[name] = sha
	}
	return hashes
}

// run runs a script at the given time.
func (s *subject) run(us int64, r request) (reply []int64, after snapshot, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s.pass(us / 1000)
	var cmd *redis.Cmd
	var ttl *redis.DurationCmd
	var hash *redis.MapStringStringCmd
	var log *redis.StringSliceCmd
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if s.ttl > 0 {
			p.PExpire(ctx, s.key, time.Duration(s.ttl)*time.Millisecond)
		} else {
			p.Del(ctx, s.key)
		}
		p.Del(ctx, s.log)
		keys := []string{s.key, strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10), s.log}
		cmd = p.EvalSha(ctx, s.sha[r.script], keys, r.args()...)
		ttl, hash, log = p.PTTL(ctx, s.key), p.HGetAll(ctx, s.key), p.LRange(ctx, s.log, 0, -1)
		return nil
	})
	if err != nil {
		return nil, snapshot{}, err
	}
	text, err := cmd.Text()
	if err != nil {
		return nil, snapshot{}, err
	}
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, snapshot{}, err
		}
		reply = append(reply, n)
	}
	if r.script == renewScript { // the time comes first, and of the token it is only told when that is another
		us := reply[0]
		switch reply = reply[1:]; {
		case reply[0] == 0:
		case len(reply) == 1:
			reply = append(reply, r.granted, us)
		default:
			reply = slices.Insert(reply, 2, us)
		}
	}
	s.keep(ttl.Val())
	after = parse(hash.Val(), s.ttl)
	for pair := range slices.Chunk(log.Val(), 2) {
		after.pushes = append(after.pushes, strings.Join(pair, " "))
	}
	return reply, after, nil
}

// pass lets virtual time go on to the given ms.
func (s *subject) pass(now int64) {
	s.ttl = max(s.ttl-(now-s.at), 0)
	s.at = now
}

// keep notes how long the key has left. A little less than before is real time that passed during the step.
func (s *subject) keep(ttl time.Duration) {
	switch left := ttl.Milliseconds(); {
	case ttl < 0: // go-redis: -1ns has no TTL, -2ns no key
		s.ttl = 0
	case left > s.ttl || left < s.ttl-200:
		s.ttl = left
	}
}

func (r request) args() []any {
	owner := "h:" + r.owner
	switch r.script {
	case acquireScript:
		lone := ""
		if r.depth == 1 && !r.busy {
			lone = fmt.Sprintf("%d 1 +%d ", r.weight, r.lease)
		}
		return []any{owner, lone, r.lease + 1000, fmt.Sprintf("%d %d %d %d %d %d inbox:", r.weight, r.capacity, r.depth, r.lease, r.window, r.claim)}
	case renewScript:
		base := ""
		if r.token > r.granted {
			base = strconv.FormatInt(r.token, 10)
		}
		return []any{owner, fmt.Sprintf("%d %d +%d %d", r.weight, r.depth, r.lease, r.granted), r.lease + 1000, base}
	}
	force, alone := 0, 0
	if r.force {
		force = 1
	} else if r.depth == 0 && r.tomb == 0 && r.next == nil && !r.busy {
		alone = 1
	}
	args := []any{owner, alone, fmt.Sprintf("%d %d %d %d %d inbox:", r.depth, max(r.weight, 1), r.tomb, r.token, force)}
	if n := r.next; n != nil {
		args = append(args, n.owner, fmt.Sprintf("%d %d %d %d", n.weight, n.capacity, n.claim, n.window))
	}
	return args
}

func (r request) String() string {
	switch {
	case r.force:
		return "force"
	case r.script == renewScript:
		return fmt.Sprintf("renew %s lease %d token %d weight %d depth %d granted %d", r.owner, r.lease, r.token, r.weight, r.depth, r.granted)
	case r.script == releaseScript:
		text := fmt.Sprintf("release %s depth %d weight %d tomb %d token %d busy %t", r.owner, r.depth, r.weight, r.tomb, r.token, r.busy)
		if r.next != nil {
			text += fmt.Sprintf(" next %v", r.next)
		}
		return text
	}
	return fmt.Sprintf("acquire %s weight %d of %d depth %d lease %d window %d claim %d busy %t",
		r.owner, r.weight, r.capacity, r.depth, r.lease, r.window, r.claim, r.busy)
}

// snapshot is what the hash says.
type snapshot struct {
	hash    map[string]string
	ttl     int64 // ms
	holders map[string]holding
	queue   []place // by number
	alive   map[string]int64
	tombs   map[string]int64
	fixed   map[string]int64 // used, exp, seq and the like
	pushes  []string         // that the run made
	damage  string           // what makes no sense
}

func parse(hash map[string]string, ttl int64) snapshot {
	s := snapshot{hash: hash, ttl: ttl, holders: map[string]holding{}, alive: map[string]int64{}, tombs: map[string]int64{}, fixed: map[string]int64{}}
	numbers := map[string]string{} // owner by number
	for field, value := range hash {
		n, err := strconv.ParseInt(value, 10, 64)
		kind, rest, pair := strings.Cut(field, ":")
		switch {
		case pair && kind == "h":
			var h holding
			var since int64
			n, _ := fmt.Sscanf(value, "%d %d %d %d %d", &h.weight, &h.depth, &h.deadline, &h.token, &since)
			if err = nil; n < 4 {
				err = strconv.ErrSyntax
			}
			if strings.Contains(value, "+") { // the lease, from the last renewal or the token
				if n == 4 {
					since = h.token
				}
				h.deadline += since / 1000
			}
			s.holders[rest] = h
		case pair && kind == "t":
			p := place{owner: rest}
			_, err = fmt.Sscanf(value, "%d %d %d %d", &p.number, &p.weight, &p.capacity, &p.claim)
			s.queue = append(s.queue, p)
		case pair && kind == "w":
			numbers[rest], err = value, nil
		case pair && kind == "c":
			s.alive[rest] = n
		case pair && kind == "x":
			s.tombs[rest] = n
		default:
			s.fixed[field] = n
		}
		if err != nil {
			s.damage = fmt.Sprintf("%s is %q", field, value)
		}
	}
	if _, told := hash["used"]; !told && len(s.holders) > 0 { // a lone holder leaves it to be found
		for _, h := range s.holders {
			s.fixed["used"] += h.weight
			s.fixed["seq"] = max(s.fixed["seq"], h.token)
			s.fixed["exp"] = h.deadline
		}
		s.fixed["v"] = 1
		if len(s.holders) > 1 {
			s.damage = "two holders, and no sum of their weights"
		}
	}
	for _, p := range s.queue {
		if numbers[strconv.FormatInt(p.number, 10)] != p.owner {
			s.damage = fmt.Sprintf("no number leads to the ticket %v", p)
		}
	}
	if len(numbers) != len(s.queue) {
		s.damage = fmt.Sprintf("%d numbers for %d tickets", len(numbers), len(s.queue))
	}
	slices.SortFunc(s.queue, func(a, b place) int { return int(a.number - b.number) })
	return s
}

// lone is the holder who is all that is written, "" if there is more.
func (s snapshot) lone() string {
	for owner := range s.holders {
		if len(s.hash) == 1 {
			return owner
		}
	}
	return ""
}

// says reports whether two snapshots say the same: what follows from the holders need not be written.
func (s snapshot) says(other snapshot) bool {
	return maps.Equal(s.fixed, other.fixed) && maps.Equal(s.holders, other.holders) && slices.Equal(s.queue, other.queue) &&
		maps.Equal(s.alive, other.alive) && maps.Equal(s.tombs, other.tombs)
}

func (s snapshot) used() (sum int64) {
	for _, h := range s.holders {
		sum += h.weight
	}
	return sum
}

func (s snapshot) ticket(owner string) (place, bool) {
	for _, p := range s.queue {
		if p.owner == owner {
			return p, true
		}
	}
	return place{}, false
}
