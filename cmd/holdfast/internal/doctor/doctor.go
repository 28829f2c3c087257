// Package doctor finds out whether a Redis is fit for locks, and what to change.
package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Note Level = "note" // could not be seen, or does not matter to locks
	Warn Level = "warn" // should be changed
	Fail Level = "fail" // must be changed
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Patient is what to examine: a Redis that answers.
type Patient struct {
	*connect.Target
	Prefix string        // of the keys
	Lease  time.Duration // that is meant to be used
}

// exam is one examination.
type exam struct {
	Patient
	masters  []*node
	replicas []*node
	findings []Finding
	outage   time.Duration // for how long a failover leaves clients without a master; 0: unknown
	nonce    string        // in the names that are used
	denied   []string      // settings that CONFIG did not tell
}

// node is one server.
type node struct {
	addr   string // "" when there is but one
	rdb    *redis.Client
	info   map[string]string
	closes bool // the client was made for the examination
}

// Examine looks at everything that matters to locks. It writes one short-lived lock under the patient's prefix.
func Examine(ctx context.Context, p Patient) []Finding {
	e := &exam{Patient: p, nonce: rand.Text()}
	if err := e.findNodes(ctx); err != nil {
		e.add("nodes", Fail, fmt.Sprintf("the servers cannot be listed: %v", err), "")
		return e.findings
	}
	defer e.close()
	if !e.checkServer() {
		return e.findings
	}
	if e.checkRights(ctx) {
		e.checkHandover(ctx)
	}
	e.each("eviction", eviction)
	e.each("memory", memory)
	e.each("persistence", func(n *node) []Finding { return e.persistence(ctx, n) })
	e.each("replication", func(n *node) []Finding { return e.replication(ctx, n) })
	e.checkSentinels(ctx)
	e.checkCluster(ctx)
	e.checkClocks(ctx)
	e.checkLatency(ctx)
	if len(e.denied) > 0 {
		slices.Sort(e.denied)
		e.add("config", Note, "CONFIG is denied here, as on most managed services: "+strings.Join(slices.Compact(e.denied), ", ")+" could not be seen",
			"look at the provider's settings, or ask as a user with +config|get")
	}
	return e.findings
}

func (e *exam) add(check string, level Level, text, remedy string) {
	e.findings = append(e.findings, Finding{check, level, text, remedy})
}

// each runs a check on every master, and says the same thing about several of them once.
func (e *exam) each(check string, f func(n *node) []Finding) {
	var order []Finding
	where := make(map[Finding][]string)
	for _, n := range e.masters {
		if len(n.info) == 0 {
			continue // INFO is denied, which was said
		}
		for _, found := range f(n) {
			found.Check = check
			if where[found] == nil {
				order = append(order, found)
			}
			where[found] = append(where[found], n.addr)
		}
	}
	for _, found := range order {
		if on := where[found]; len(on) < len(e.masters) {
			found.Text += " (" + strings.Join(on, ", ") + ")"
		}
		e.findings = append(e.findings, found)
	}
}

// findNodes lists the masters with what INFO says of them, and their replicas.
func (e *exam) findNodes(ctx context.Context) error {
	var mu sync.Mutex // go-redis visits nodes side by side
	visit := func(ctx context.Context, rdb *redis.Client) error {
		n := &node{rdb: rdb, info: make(map[string]string)}
		if e.Form == connect.Cluster {
			n.addr = rdb.Options().Addr
		}
		text, err := rdb.Info(ctx).Result()
		if err != nil && !refused(err) {
			return err
		}
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				n.info[k] = v
			}
		}
		mu.Lock()
		defer mu.Unlock()
		e.masters = append(e.masters, n)
		return nil
	}
	var err error
	switch rdb := e.UniversalClient.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, visit)
	case *redis.Client:
		err = visit(ctx, rdb)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(e.masters, func(a, b *node) int { return cmp.Compare(a.addr, b.addr) })
	for _, n := range e.masters {
		e.findReplicas(n)
	}
	return nil
}

// findReplicas makes clients of a master's replicas, by the addresses under which the master knows them.
func (e *exam) findReplicas(master *node) {
	o := *master.rdb.Options()
	for _, key := range slices.Sorted(maps.Keys(master.info)) {
		if fields := pairs(master.info[key]); strings.HasPrefix(key, "slave") && fields["ip"] != "" {
			addr := fields["ip"] + ":" + fields["port"]
			if strings.Contains(fields["ip"], ":") {
				addr = "[" + fields["ip"] + "]:" + fields["port"]
			}
			e.replicas = append(e.replicas, &node{addr: addr, closes: true, rdb: redis.NewClient(&redis.Options{
				Addr: addr, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, Protocol: o.Protocol,
				DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, DialerRetries: 1, MaxRetries: -1,
			})})
		}
	}
}

func (e *exam) close() {
	for _, n := range e.replicas {
		if n.closes {
			_ = n.rdb.Close() // it was only asked
		}
	}
}

// setting asks a node for a parameter. ok is false where CONFIG is denied, which is told at the end.
func (e *exam) setting(ctx context.Context, n *node, name string) (value string, ok bool) {
	settings, err := n.rdb.ConfigGet(ctx, name).Result()
	if err != nil {
		e.denied = append(e.denied, name)
		return "", false
	}
	return settings[name], true
}

// refused tells what a server does not let a user do from what does not work.
func refused(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, words := range []string{"noperm", "unknown command", "can't run this command", "not allowed", "disabled", "unsupported"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// pairs reads "ip=…,port=…".
func pairs(text string) map[string]string {
	fields := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			fields[k] = v
		}
	}
	return fields
}
