package integration

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/topology"
	"github.com/holdfast-go/holdfast/internal/conformance"
)

// What holdfast may do is what docs/reliability.md tells users to allow, and not a command more.

// documented returns the words of the rule in the docs for a standalone server, and those to be added for a Cluster and
// for the Replicas option.
func documented(t testing.TB) (rule, cluster, replicas []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/reliability.md")
	must(t, err)
	rule = strings.Fields(regexp.MustCompile(`(?m)^ACL SETUSER app (?:.*\\\n)*.*`).FindString(string(text)))
	rule = slices.DeleteFunc(rule, func(word string) bool { return word == `\` })
	extra := regexp.MustCompile("On a Cluster add `(.*?)`, with `Replicas` add `(.*?)`").FindStringSubmatch(string(text))
	if len(rule) < 10 || extra == nil {
		t.Fatal("no rule in the docs")
	}
	return rule, strings.Fields(extra[1]), strings.Fields(extra[2])
}

// granted are the commands that a rule allows.
func granted(rule []string) (commands []string) {
	for _, word := range rule {
		if name, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, name)
		}
	}
	slices.Sort(commands)
	return commands
}

// setUser gives a server the user of a rule.
func setUser(t testing.TB, rdb *redis.Client, rule []string) {
	t.Helper()
	args := make([]any, len(rule))
	for i, word := range rule {
		args[i] = word
	}
	must(t, rdb.Do(t.Context(), args...).Err())
}

// restricted makes a user who lacks one command of the documented ones, and returns the option to be that user.
func restricted(t testing.TB, srv *server.Server, missing string) func(*redis.Options) {
	t.Helper()
	rule, _, _ := documented(t)
	rule[2] = "without-" + missing
	setUser(t, srv.Client(), append(rule, "-"+missing))
	return func(o *redis.Options) { o.Username, o.Password = rule[2], "secret" }
}

// The whole conformance suite passes with the documented rights, each of which is needed, and nothing else is tried.
func TestDocumentedRightsAreEnoughAndNoneTooMany(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	admin := srv.Client()
	rule, _, _ := documented(t)
	setUser(t, admin, rule)
	app := func(t testing.TB) redis.UniversalClient {
		return srv.Client(func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
	}
	t.Run("conformance", func(t *testing.T) { conformance.Run(t, app) })

	m := newClient(t, app(t)).Mutex(unique(t))
	hold := locked(t, m)
	next := lockAside(within(t, 30*time.Second), newClient(t, app(t)).Mutex(m.Name(), holdfast.Lease(farLease)))
	queued(t, m, 1)
	eventually(t, 20*time.Second, "the silent subscription is asked for a sign of life", func() bool {
		return slices.Contains(used(t, admin), "ping")
	})
	put(t, hold)
	put(t, served(t, 10*time.Second, next))

	for _, command := range granted(rule) {
		if !slices.Contains(used(t, admin), command) {
			t.Errorf("%s is allowed, but never sent", command)
		}
	}
	for _, denied := range denials(t, admin) {
		t.Errorf("denied: %s", denied)
	}
}

// used are the commands that a server has executed, also from scripts.
func used(t testing.TB, admin *redis.Client) (commands []string) {
	t.Helper()
	info, err := admin.Info(t.Context(), "commandstats").Result()
	must(t, err)
	for _, m := range regexp.MustCompile(`cmdstat_(\S+?):`).FindAllStringSubmatch(info, -1) {
		commands = append(commands, m[1])
	}
	return commands
}

// denials are what users were refused, without what go-redis tries on each new connection and can do without.
func denials(t testing.TB, admin *redis.Client) (denied []string) {
	t.Helper()
	log, err := admin.Do(t.Context(), "ACL", "LOG", "1000").Slice()
	must(t, err)
	for _, entry := range log {
		fields := entry.(map[any]any)
		text := strings.ToLower(fields["reason"].(string) + " " + fields["object"].(string))
		if !strings.Contains(text, "client|setinfo") && !strings.Contains(text, "client|maint_notifications") {
			denied = append(denied, text)
		}
	}
	return denied
}

// On a Cluster go-redis asks for the map of the slots, and with Replicas there is WAIT.
func TestDocumentedRightsAreEnoughOnACluster(t *testing.T) {
	t.Parallel()
	c := topology.StartCluster(t)
	rule, cluster, replicas := documented(t)
	for _, n := range c.Nodes() {
		setUser(t, n.Client(), slices.Concat(rule, cluster, replicas))
	}
	client := func() *holdfast.Client {
		return newClient(t, c.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "app", "secret" }))
	}
	mine, other, name := client(), client(), unique(t)
	for i := range 10 {
		m := mine.Mutex(name+time.Duration(i).String(), holdfast.Lease(farLease), holdfast.Replicas(1, 500*time.Millisecond))
		hold := locked(t, m)
		next := lockAside(within(t, 30*time.Second), other.Mutex(m.Name(), holdfast.Lease(farLease)))
		queued(t, m, 1)
		put(t, hold)
		put(t, served(t, 10*time.Second, next))
	}
	var sent []string
	for _, n := range c.Nodes() {
		sent = append(sent, used(t, n.Client())...)
		for _, denied := range denials(t, n.Client()) {
			t.Errorf("%v denied %s", n, denied)
		}
	}
	for _, command := range granted(slices.Concat(cluster, replicas)) {
		if !slices.Contains(sent, command) {
			t.Errorf("%s is allowed, but never sent", command)
		}
	}
}

// A right that is missing is told at once, by an error that names the cause; nobody waits for it to come.
func TestMissingRightIsToldAtOnce(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	for _, missing := range []string{"evalsha", "eval", "exists", "time", "hset", "pexpire"} {
		must(t, srv.Client().ScriptFlush(t.Context()).Err())
		m := newClient(t, srv.Client(restricted(t, srv, missing))).Mutex(unique(t) + missing)
		ctx := within(t, time.Minute)
		_, err := m.Lock(ctx)
		if err == nil || ctx.Err() != nil {
			t.Errorf("without %s: %v, %v", missing, err, ctx.Err())
			continue
		}
		expect(t, "without "+missing, err, holdfast.ErrUnavailable)
		if ttl := srv.Client().PTTL(context.Background(), key(m)).Val(); ttl == -1 {
			t.Errorf("without %s a key stays for ever", missing)
		}
		if text := err.Error(); !strings.Contains(text, m.Name()) || !anyOf(text, "NOPERM", "can't run this command", "has no permissions") {
			t.Errorf("without %s the error says: %v", missing, err)
		}
	}
}

func anyOf(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// Rights for other keys, and none for those of the prefix.
func TestForeignPrefixIsRefused(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	rule, _, _ := documented(t)
	setUser(t, srv.Client(), rule)
	app := srv.Client(func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
	m := newClient(t, app, holdfast.Prefix("other:")).Mutex(unique(t))
	if _, err := m.Lock(within(t, time.Minute)); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("%v", err)
	}
}

// Rights are revoked under a live hold: it is told, in time, and when they are back all goes on.
func TestRevokedRightsEndAHoldInTime(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	admin := srv.Client()
	rule, _, _ := documented(t)
	setUser(t, admin, rule)
	app := func(o *redis.Options) { o.Username, o.Password = "app", "secret" }
	var log logbook
	client := newClient(t, srv.Client(app), log.option())
	m := client.Mutex(unique(t), holdfast.Lease(2*time.Second))
	hold := locked(t, m)
	short := client.Mutex(m.Name()+".short", holdfast.Lease(farLease))
	kept := locked(t, short)
	setUser(t, admin, append(rule, "-evalsha"))
	told(t, 10*time.Second, hold)
	if text := hold.Err().Error(); !strings.Contains(text, "NOPERM") {
		t.Errorf("not told why: %v", text)
	}
	if n := log.warnings(""); n == 0 || n > 5 {
		t.Errorf("%d warnings:\n%s", n, log.text())
	}
	if err := kept.Err(); err != nil {
		t.Errorf("a longer lease ended as well: %v", err)
	}
	setUser(t, admin, rule)
	put(t, locked(t, m))
	if err := kept.Extend(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	must(t, kept.Release(context.Background()))
}
