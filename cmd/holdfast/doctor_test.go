//go:build unix

package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

// finding is what doctor prints as JSON.
type finding struct{ Check, Level, Text, Remedy string }

// doctor runs doctor --json and returns its findings.
func (s *site) doctor(code int, args ...string) []finding {
	s.t.Helper()
	r := s.want(code, append([]string{"doctor", "--json"}, args...))
	return fromJSON[struct{ Findings []finding }](s.t, r).Findings
}

// found checks that there is a finding of a check and level (or any) that contains certain words.
func (s *site) found(findings []finding, check, level, words string) {
	s.t.Helper()
	for _, f := range findings {
		if f.Check == check && (level == "" || f.Level == level) && strings.Contains(f.Text+" → "+f.Remedy, words) {
			return
		}
	}
	s.t.Errorf("no %s %q with %q in\n%+v", level, check, words, findings)
}

// as is the site as another user, who is made by the rules.
func (s *site) as(user string, rules ...any) *site {
	s.t.Helper()
	args := append([]any{"acl", "setuser", user, "reset", "on", ">pw"}, rules...)
	if err := s.rdb.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatal(err)
	}
	other := *s
	other.url = strings.Replace(s.url, "://", "://"+user+":pw@", 1)
	return &other
}

func TestDoctorOnAGoodServer(t *testing.T) {
	t.Parallel()
	s := siteOn(t, server.Start(t, server.Args("--appendonly", "yes", "--maxmemory", "500mb")))
	s.want(0, []string{"doctor", "--strict"}, "ok    connection", "ok    version", "ok    rights", "ok    handover", "ok    eviction",
		"ok    memory", "ok    persistence  AOF is on with appendfsync everysec", "note  replication", "ok    latency", "0 fail, 0 warn")
	keys, err := s.rdb.Keys(t.Context(), "*").Result()
	if len(keys) > 1 || err != nil {
		t.Errorf("left behind: %q, %v", keys, err)
	}
	for _, key := range keys { // a tombstone may keep it: of a poll that crossed the release
		if ttl, err := s.rdb.PTTL(t.Context(), key).Result(); ttl > 31*time.Second || ttl == -1 || err != nil {
			t.Errorf("%s lives for %v, %v", key, ttl, err)
		}
	}
	s.want(2, []string{"doctor", "extra"})
}

func TestDoctorOnServersThatAreNotFit(t *testing.T) {
	t.Parallel()
	srv := server.Start(t, server.Args("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))
	s := siteOn(t, srv)
	s.want(3, []string{"doctor"}, "fail  eviction     maxmemory-policy allkeys-lru evicts any key", "→ CONFIG SET maxmemory-policy noeviction",
		"warn  persistence  nothing is kept on disk", "1 fail")

	s.rdb.ConfigSet(t.Context(), "maxmemory-policy", "volatile-ttl")
	s.rdb.ConfigSet(t.Context(), "maxmemory", "1")
	findings := s.doctor(3)
	s.found(findings, "eviction", "fail", "keys with a TTL, which locks have")
	s.found(findings, "memory", "warn", "of maxmemory is used")

	s.rdb.ConfigSet(t.Context(), "maxmemory", "0")
	s.found(s.doctor(0), "eviction", "warn", "there is no maxmemory")
	s.doctor(3, "--strict")

	srv.Kill()
	s.found(s.doctor(3), "connection", "fail", "nothing listens there")
}

func TestDoctorFindsMissingRights(t *testing.T) {
	t.Parallel()
	s := siteOn(t, server.Start(t))
	const all = "~holdfast:*"

	deaf := s.as("deaf", all, "resetchannels", "+@all")
	findings := deaf.doctor(0)
	s.found(findings, "rights", "warn", "missing: &holdfast:inbox:*; waiters poll instead of being told → ACL SETUSER deaf &holdfast:inbox:*")
	s.found(findings, "handover", "warn", "it polled")
	deaf.doctor(3, "--strict")

	s.found(s.as("dumb", all, "&*", "+@all", "-hkeys", "-scan", "-wait").doctor(3), "rights", "fail", "missing: +hkeys; nothing can be locked")
	findings = s.as("dumb", all, "&*", "+@all", "-scan", "-wait", "-publish").doctor(0)
	s.found(findings, "rights", "warn", "+publish +scan")
	s.found(findings, "rights", "note", "+wait")
	s.found(s.as("stray", "~other:*", "&*", "+@all").doctor(3), "rights", "fail", "~holdfast:*")
	s.found(s.as("dumb", all, "&*", "+@all").doctor(0), "rights", "ok", "are allowed")

	managed := s.as("managed", all, "&*", "+@all", "-config", "-info")
	findings = managed.doctor(0)
	s.found(findings, "info", "note", "INFO is denied")
	s.found(findings, "latency", "ok", "")
	findings = s.as("managed", all, "&*", "+@all", "-config").doctor(0)
	s.found(findings, "config", "note", "save could not be seen")
	s.found(findings, "persistence", "warn", "AOF is off")

	wrong := *s
	wrong.url = strings.Replace(s.url, "://", "://managed:no@", 1)
	s.found(wrong.doctor(3), "connection", "fail", "the password is wrong")
}

func TestDoctorLooksAtReplicas(t *testing.T) {
	t.Parallel()
	master, replica := server.Start(t, server.Args("--repl-diskless-sync-delay", "0")), server.Start(t)
	s, r := siteOn(t, master), siteOn(t, replica)
	host, port, _ := strings.Cut(master.Addr(), ":")
	if err := r.rdb.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	s.until("the replica is in step", func() bool {
		info, err := s.rdb.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "state=online")
	})
	findings := s.doctor(0)
	s.found(findings, "replication", "warn", "1 replica, min-replicas-to-write 0")
	s.found(findings, "clocks", "ok", "the clocks of 2 servers differ by")
	s.found(findings, "persistence", "warn", "its replicas empty themselves")
	s.found(r.doctor(3), "address", "fail", "use the address of its master, "+master.Addr())
	s.rdb.ConfigSet(t.Context(), "min-replicas-to-write", "1")
	s.found(s.doctor(0), "replication", "ok", "min-replicas-to-write 1")

	replica.Pause()
	s.found(s.doctor(0, "--timeout", "300ms"), "clocks", "note", "replica "+replica.Addr()+" could not be asked")
}

func TestDoctorMeasuresTheRoundTrip(t *testing.T) {
	t.Parallel()
	proxy := fault.NewProxy(t, server.Shared(t).Addr())
	s := &site{t, "redis://" + proxy.Addr(), "holdfast-cmd:" + t.Name() + ":", server.Shared(t).Client()}
	proxy.DelayReplies(-1, 20*time.Millisecond, fault.Command("ECHO"))
	s.found(s.doctor(0, "--lease", "1500ms"), "latency", "warn", "1.5s is too short")

	proxy.Blackhole(fault.ToClient, fault.Subscribers)
	s.found(s.doctor(0), "handover", "warn", "messages do not arrive")
}
