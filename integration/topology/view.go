package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// view is the cluster as one node sees it, by the ids of the nodes.
type view map[string]member

// member is one node in a view.
type member struct {
	id      string
	myself  bool
	failing bool   // suspected or known to be down
	master  string // whom it follows; "" for a master
	epoch   int64  // of its last election
	slots   [][2]int
}

// view asks a node for its view.
func (n *Node) view(ctx context.Context) (view, error) {
	text, err := n.admin.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("%v: CLUSTER NODES: %w", n, err)
	}
	v := make(view)
	for line := range strings.Lines(text) {
		m, err := parseMember(line)
		if err != nil {
			return nil, fmt.Errorf("%v: %q: %w", n, line, err)
		}
		if m.id != "" {
			v[m.id] = m
		}
	}
	return v, nil
}

// parseMember reads "id address flags master ping pong epoch link slot slot-slot [slot-<-id] …". A node that is only
// shaking hands gives nothing.
func parseMember(line string) (m member, err error) {
	words := strings.Fields(line)
	if len(words) < 8 {
		return m, fmt.Errorf("%d words", len(words))
	}
	flags := strings.Split(words[2], ",")
	if slices.Contains(flags, "handshake") {
		return m, nil
	}
	m.id = words[0]
	m.myself = slices.Contains(flags, "myself")
	m.failing = slices.Contains(flags, "fail") || slices.Contains(flags, "fail?")
	if words[3] != "-" {
		m.master = words[3]
	}
	if m.epoch, err = strconv.ParseInt(words[6], 10, 64); err != nil {
		return m, err
	}
	for _, word := range words[8:] {
		if strings.HasPrefix(word, "[") {
			continue // on the move
		}
		low, high, ok := strings.Cut(word, "-")
		if !ok {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil {
			return m, fmt.Errorf("slots %q", word)
		}
		m.slots = append(m.slots, [2]int{from, to})
	}
	return m, nil
}

func (m member) serves(slot int) bool {
	return slices.ContainsFunc(m.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// owners tells who serves what, in a form to compare.
func (v view) owners() string {
	var owners []string
	for _, m := range v {
		if len(m.slots) > 0 {
			owners = append(owners, fmt.Sprint(m.id[:8], m.slots))
		}
	}
	slices.Sort(owners)
	return strings.Join(owners, " ")
}

func containsLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}
