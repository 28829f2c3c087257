package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// probe is a command that is tried.
type probe struct {
	command string
	args    []any
	level   Level  // if it is denied
	purpose string // what does not work then
}

// checkRights tries every command that the library sends or has its scripts send, on a key that nobody uses, and the
// channel of an inbox. It reports whether locking works at all.
func (e *exam) checkRights(ctx context.Context) bool {
	key, channel := e.Prefix+"mutex:holdfast-doctor:"+e.nonce, e.Prefix+"inbox:holdfast-doctor"
	const locks = "nothing can be locked"
	probes := []probe{
		{"ping", nil, Warn, "dead connections are noticed late"},
		{"evalsha", []any{strings.Repeat("0", 40), 1, key}, Fail, locks},
		{"eval", []any{"return 1", 1, key}, Fail, locks},
		{"time", nil, Fail, locks},
		{"exists", []any{key}, Fail, locks},
		{"hget", []any{key, "v"}, Fail, locks},
		{"hmget", []any{key, "v"}, Fail, locks},
		{"hgetall", []any{key}, Fail, locks},
		{"hkeys", []any{key}, Fail, locks},
		{"hlen", []any{key}, Fail, locks},
		{"pttl", []any{key}, Fail, locks},
		{"hset", []any{key, "v", "1"}, Fail, locks},
		{"pexpire", []any{key, 1000}, Fail, locks},
		{"hdel", []any{key, "v"}, Fail, locks},
		{"del", []any{key}, Fail, locks},
		{"publish", []any{channel, "hello"}, Warn, "waiters poll instead of being told"},
		{"scan", []any{0, "count", 1}, Warn, "ls, top and graph do not work"},
		{"wait", []any{0, 1}, Note, "the option Replicas does not work"},
	}
	denied := make(map[Level][]string) // what to allow
	purposes := make(map[Level][]string)
	deny := func(level Level, right, purpose string) {
		denied[level] = append(denied[level], right)
		if !strings.Contains(strings.Join(purposes[level], "; "), purpose) {
			purposes[level] = append(purposes[level], purpose)
		}
	}
	for _, p := range probes {
		err := e.Do(ctx, append([]any{p.command}, p.args...)...).Err()
		if right := e.missing(err, p.command); right != "" {
			deny(p.level, right, p.purpose)
		}
	}
	if err := e.trySubscribe(ctx, channel); err != nil {
		if right := e.missing(err, "subscribe"); right != "" {
			deny(Warn, right, "waiters poll instead of being told")
		}
	}
	e.reportRights(ctx, denied, purposes)
	return len(denied[Fail]) == 0
}

// missing names the right that an error says is missing, as ACL SETUSER wants it; "" if it says nothing of the kind.
func (e *exam) missing(err error, command string) string {
	if !refused(err) {
		return ""
	}
	_, what, access := strings.Cut(err.Error(), " to access ") // "… no permissions to access one of the keys used as arguments"
	switch {
	case access && strings.Contains(what, "channel"):
		return "&" + e.Prefix + "inbox:*"
	case access && strings.Contains(what, "key"):
		return "~" + e.Prefix + "*"
	}
	return "+" + command
}

func (e *exam) trySubscribe(ctx context.Context, channel string) error {
	sub := e.Subscribe(ctx, channel)
	defer func() { _ = sub.Close() }() // nothing came, or all that was wanted
	_, err := sub.ReceiveTimeout(ctx, 2*time.Second)
	return err
}

func (e *exam) reportRights(ctx context.Context, denied map[Level][]string, purposes map[Level][]string) {
	user, err := e.Do(ctx, "acl", "whoami").Text()
	if err != nil {
		user = "<user>"
	}
	for _, level := range []Level{Fail, Warn, Note} {
		if len(denied[level]) == 0 {
			continue
		}
		rights := unique(denied[level])
		e.add("rights", level, fmt.Sprintf("missing: %s; %s", strings.Join(rights, " "), strings.Join(purposes[level], "; ")),
			fmt.Sprintf("ACL SETUSER %s %s", user, strings.Join(rights, " ")))
	}
	if len(denied[Fail])+len(denied[Warn]) == 0 {
		e.add("rights", OK, "all commands, keys and channels that locks need are allowed", "")
	}
}

// unique keeps the first of each.
func unique(words []string) []string {
	var list []string
	seen := make(map[string]bool)
	for _, w := range words {
		if !seen[w] {
			seen[w] = true
			list = append(list, w)
		}
	}
	return list
}
