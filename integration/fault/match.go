package fault

import (
	"crypto/sha1" //nolint:gosec // the name by which Redis knows a script
	"encoding/hex"
	"slices"
	"strings"
)

// Match picks commands by their words; the first is the command's name as it
// was sent. It runs inside the proxy and must not call it.
type Match func(cmd []string) bool

// Any matches every command.
func Any() Match { return func([]string) bool { return true } }

// Command matches commands by name, in any case.
func Command(names ...string) Match {
	return func(cmd []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, cmd[0]) })
	}
}

// Script matches every way to run a script.
func Script() Match { return Command("EVALSHA", "EVAL", "EVALSHA_RO", "EVAL_RO", "FCALL", "FCALL_RO") }

// Sha matches runs of the scripts with these SHA1 sums in hex, whether sent as
// a sum or in full.
func Sha(sums ...string) Match {
	bySum, byBody := Command("EVALSHA", "EVALSHA_RO"), Command("EVAL", "EVAL_RO")
	return func(cmd []string) bool {
		switch {
		case len(cmd) < 2:
			return false
		case bySum(cmd):
			return slices.Contains(sums, strings.ToLower(cmd[1]))
		case byBody(cmd):
			sum := sha1.Sum([]byte(cmd[1])) //nolint:gosec // as above
			return slices.Contains(sums, hex.EncodeToString(sum[:]))
		}
		return false
	}
}

// ArgContains matches commands of which an argument contains s. The body of a
// script counts as an argument.
func ArgContains(s string) Match {
	return func(cmd []string) bool {
		return slices.ContainsFunc(cmd[1:], func(arg string) bool { return strings.Contains(arg, s) })
	}
}

// ArgIs matches commands whose word number i is s; word 0 is the command's name.
func ArgIs(i int, s string) Match {
	return func(cmd []string) bool { return i < len(cmd) && cmd[i] == s }
}

// All matches what all of the given match.
func All(matches ...Match) Match {
	return func(cmd []string) bool {
		return !slices.ContainsFunc(matches, func(m Match) bool { return !m(cmd) })
	}
}

// Not matches what m does not.
func Not(m Match) Match { return func(cmd []string) bool { return !m(cmd) } }
