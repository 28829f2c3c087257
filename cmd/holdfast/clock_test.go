//go:build unix

package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/fakewall"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestDoctorComparesClocks(t *testing.T) {
	t.Parallel()
	master, replica := server.Start(t, server.Args("--repl-diskless-sync-delay", "0")), fakewall.Start(t)
	s := siteOn(t, master)
	host, port, _ := strings.Cut(master.Addr(), ":")
	if err := replica.Client().Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	s.until("the replica is known", func() bool {
		info, err := s.rdb.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "state=online")
	})
	for _, step := range []struct {
		by    time.Duration
		code  int
		level string
	}{
		{0, 0, "ok"},
		{2 * time.Second, 0, "warn"},
		{8 * time.Second, 3, "fail"},
		{-20 * time.Second, 3, "fail"},
	} {
		replica.Step(step.by)
		s.found(s.doctor(step.code), "clocks", step.level, "the clocks of 2 servers differ by")
	}
}
