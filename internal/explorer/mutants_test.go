package explorer_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/explorer"
)

// luaMutants are bugs in the scripts, each with the scope that has to find it.
var luaMutants = []struct{ name, old, new, scope string }{
	{"ttl does not cover a deadline", "  cover(deadline)\n  changed = true", "  changed = true", "mixed-leases"},
	{"ttl does not cover a lone holder", "local denied = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])", "local denied = redis.pcall('PEXPIRE', KEYS[1], ARGV[3] - 100)", "two-late"},
	{"ttl does not cover a wait", "cover(now + window + 2 * STEP)\nfinish()", "finish()", "two-late"},
	{"ttl does not cover a tombstone", "    cover(xt)\n", "", "two-late"},
	{"exp is not lowered", "if exp == 0 or deadline < exp then exp = deadline end\n  return seq", "return seq", "two-crash"},
	{"exp is kept when it expires", "        if exp == 0 or deadline < exp then exp = deadline end\n", "", "rw-write-read-read"},
	{"an expired holder still counts as held", "if all[i] == 'h:' .. owner then held = false end", "", "two-late"},
	{"release does not grant", "if q > 0 then\n  local n, holes", "if q > 0 and asker then\n  local n, holes", "three-plain"},
	{"a poll does not grant", "if q > 0 then\n  local n, holes", "if q > 0 and not asker then\n  local n, holes", "three-crash"},
	{"the dead count as alive", "o ~= asker and not alive[c]", "false", "three-crash"},
	{"a stall evicts", "math.min(math.max(now - lt, 0), STEP)", "math.max(now - lt, 0)", "stall-evicts-none"},
	{"barging past the queue", "if not token and q <= 0 and used", "if not token and used", "rw-write-read-read"},
	{"a blocked head is passed over", "if used + w > capacity then break end", "if used + w > capacity then w = 0 end", "rw-read-write-read"},
	{"judged by the caller's capacity", "local _, w, capacity, claim = ticket(redis.call('HGET', KEYS[1], 't:' .. o))", "local _, w, _, claim = ticket(redis.call('HGET', KEYS[1], 't:' .. o)) local capacity = tonumber(string.match(ARGV[4], '^%d+ (%d+)')) or 0", "semaphore-capacities"},
	{"token is seq+1", "seq = math.max(seq + 1, us)", "seq = seq + 1", "two-rounds-cancel"},
	{"token is the time", "seq = math.max(seq + 1, us)", "seq = us", "ahead"},
	{"token that comes back changes nothing", "if token > seq then seq, changed = token, true end", "seq = math.max(seq, token)", "ahead"},
	{"token that comes back is forgotten", "if token > seq then seq, changed = token, true end", "", "ahead"},
	{"key is deleted before its last token is past", "if xt <= now and seq <= us then", "if xt <= now then", "ahead"},
	{"the push says another deadline", "' ' .. str(deadline) .. ' ' .. str(q)", "' ' .. str(deadline + 100) .. ' ' .. str(q)", "three-plain"},
	{"a pushed grant has the caller's lease", "(o == asker and lease or claim)", "(lease > 0 and lease or claim)", "two-late"},
	{"a pushed grant is shorter than announced", "local deadline = now + (o == asker and lease or claim)", "local deadline = now + (o == asker and lease or claim - 100)", "three-plain"},
	{"tombstone is ignored", "if xt > now and number(", "if false and number(", "two-late"},
	{"tombstone is deleted with the key", "if xt <= now and seq <= us then", "if seq <= us then", "two-late"},
	{"release forgets the tombstone's end", "    xt = math.max(xt, now + tomb)\n", "", "two-late"},
	{"renewal creates", "if not w or version", "w, plus, deadline, mine, since = w or '1', plus or '+', deadline or '100', mine or '1', since or us if false and version", "two-renew"},
	{"renewal revives an expired hold", "if deadline <= now then return '0' end", "", "two-crash-renew"},
	{"renewal does not keep the key", "redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT')", "redis.call('PEXPIRE', KEYS[1], 1, 'GT')", "two-renew"},
	{"renewal as expected revives an expired hold", "since <= micros and math.floor(since / 1000) + lease > now", "since <= micros", "two-crash-renew"},
	{"re-entry creates", "if depth > 1 then -- a re-entry never creates", "if false then", "rw-crash"},
	{"re-entry changes the weight", "writeHolder(owner, w, depth, math.max", "used = used - w + weight writeHolder(owner, weight, depth, math.max", "rw-downgrade-late"},
	{"partial release raises the weight", "local left = math.min(w, weight)", "local left = weight", "rw-downgrade-late"},
	{"partial release keeps used", "    used = used - w + left\n", "", "rw-downgrade"},
	{"cancel leaves the ticket", "drop(owner, (ticket(ticketed)))", "", "three-cancel"},
	{"next is queued whatever the release did", "if nextOwner and result == 1 and depth == 0 then", "if nextOwner then", "next-late"},
	{"next is queued though it is known", "if not own[1] and not own[2] and number(own[3]) <= now then", "if true then", "next-late"},
	{"next is queued though it waits", "if not own[1] and not own[2] and", "if not own[1] and", "next-lost"},
	{"next is queued though it holds", "if not own[1] and not own[2] and", "if not own[2] and", "next-semaphore"},
	{"next is queued though it is over", "if not own[1] and not own[2] and number(own[3]) <= now then", "if not own[1] and not own[2] then", "next-late"},
	{"seq in a release's answer counts its own grants", "return result .. ' ' .. str(before)", "return result .. ' ' .. str(seq)", "next"},
	{"force leaves no tombstone", "redis.call('HSET', KEYS[1], 'x:' .. o, str(now + TOMB), 'v', '1')", "redis.call('HSET', KEYS[1], 'x:Z:0', str(now + TOMB), 'v', '1')", "two-forced"},
	{"force frees nothing", "  used, exp = 0, 0\nend", "end", "two-forced"},
	{"release alone forgets the others", "if lone[1] and not lone[2] then", "if lone[1] then", "semaphore"},
	{"release alone forgets the queue", "if lone[1] and not lone[2] then", "if lone[1] then", "two-late"},
	{"weights of a lone holder are not found", "used, seq = used + w, math.max(seq, token)", "seq = math.max(seq, token)", "two-late"},
	{"deadline of a lone holder is not found", "      if exp == 0 or deadline < exp then exp = deadline end\n    end\n  end\nend", "    end\n  end\nend", "two-crash"},
	{"memory: a poll writes first", "if held or ticketed then touch() end", "", "two-full-memory"},
	{"memory: a release writes first", "or not (held or ticketed) or", "or", "two-full-memory-late"},
	{"memory: a renewal writes first", "if redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT')", "redis.call('HSET', KEYS[1], 'v', '1') if redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT')", "two-full-memory"},
	{"grants beyond the limit are forgotten", "          more = 1\n          break", "          more = 1\n          n = tail break", "rw-one-grant-a-run"},
	{"head falls behind", "  head = n\n", "", "three-plain"},
	{"head is passed", "  head = n\n", "  head = n + 1\n", "three-plain"},
	{"renewal does not bring the token", "if base > (tonumber(fields[4] or mine) or 0) then", "if false then", "pass-renew"},
	{"late renewal brings an older token", "if base > (tonumber(fields[4] or mine) or 0) then", "if base > 0 then", "pass-late-renewal"},
	{"release does not bring the token", "if token > seq then seq, changed = token, true end", "", "pass-renew"},
	{"release brings an older token than a renewal did", "if token > seq then seq, changed = token, true end", "seq, changed = token, true", "pass-renew"},
	{"seq in a release's answer leaves out its token", "local before, n = seq, 0", "local before, n = number(fields[4]), 0", "pass-next"},
	{"a tenure after a late token begins below it", "seq = math.max(seq + 1, us)", "seq = seq < us and us or seq", "ahead"},
	{"ahead is always 0", "n > head and 1 or 0", "0", "three-plain"},
}

// clientMutants are bugs in the clients' rules.
var clientMutants = []struct {
	name  string
	bugs  explorer.ClientBugs
	scope string
}{
	{"a push is believed whatever its token", explorer.ClientBugs{NoTokenCheck: true}, "old-push"},
	{"a call under way leaves no tombstone", explorer.ClientBugs{NoTombInFlight: true}, "two-slow"},
	{"a lost call leaves no tombstone", explorer.ClientBugs{NoTombLost: true}, "two-late"},
	{"a release that names leaves no tombstone", explorer.ClientBugs{NoTombNamed: true}, "next-late"},
	{"a repeated release names anew", explorer.ClientBugs{RequeueAlways: true}, "next-lost"},
	{"a deadline counts from the receipt", explorer.ClientBugs{ReceiptDeadline: true}, "two-slow"},
	{"tokens of passes grow with the client's clock", explorer.ClientBugs{PassElapsed: true}, "pass-forced"},
	{"tokens of passes grow with the client's clock over a loss", explorer.ClientBugs{PassElapsed: true}, "pass-flush"},
	{"a pass keeps the token", explorer.ClientBugs{PassSame: true}, "pass"},
	{"a pass without a number left takes the next base", explorer.ClientBugs{PassCarry: true}, "pass-flush"},
	{"a renewal that finds nothing is a proof", explorer.ClientBugs{ProofLost: true}, "pass-flush"},
	{"a renewal that finds another tenure is a proof", explorer.ClientBugs{ProofOther: true}, "pass-late-flush"},
	{"a proof reaches to the time of the renewal", explorer.ClientBugs{ProofSameTime: true}, "pass-flush"},
	{"a proof reaches to the receipt of its answer", explorer.ClientBugs{ProofReceipt: true}, "pass-slow-flush"},
	{"passed on after the deadline", explorer.ClientBugs{PassLate: true}, "pass"},
	{"an ended session passes on", explorer.ClientBugs{PassEnded: true}, "pass"},
	{"a release forgets the base used", explorer.ClientBugs{PassSilent: true}, "ahead"},
	{"a pushed grant is as long as the waiter's lease", explorer.ClientBugs{OwnClaim: true}, "three-plain"},
}

func scopeNamed(t *testing.T, name string) explorer.Scope {
	t.Helper()
	for _, scope := range explorer.Scopes() {
		if scope.Name == name {
			return scope
		}
	}
	t.Fatalf("no scope %q", name)
	return explorer.Scope{}
}

func requireFound(t *testing.T, source explorer.Source, scope explorer.Scope) {
	t.Helper()
	report, err := explorer.Explore(source, scope, explorer.Limits{Time: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if report.Violation == "" {
		t.Errorf("not found: %v", report)
		return
	}
	t.Log(report)
}

func TestBugsInScriptsAreFound(t *testing.T) {
	source := load(t)
	for _, m := range luaMutants {
		t.Run(m.name, func(t *testing.T) {
			mutant, err := source.Replace(m.old, m.new)
			if err != nil {
				t.Fatal(err)
			}
			requireFound(t, mutant, scopeNamed(t, m.scope))
		})
	}
}

func TestBugsInClientsAreFound(t *testing.T) {
	source := load(t)
	for _, m := range clientMutants {
		t.Run(m.name, func(t *testing.T) {
			scope := scopeNamed(t, m.scope)
			scope.Bugs = m.bugs
			requireFound(t, source, scope)
		})
	}
}
