package integration

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
)

// The server is killed and comes back from its append-only file, flushed with every write; of the client processes one
// is killed in between. What the living ones saw is what a lock could have shown them.
func TestHistoryOfKilledServersAndClientsKeepsItsOrder(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mutex", "rw", "sem"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := server.Start(t, server.Args("--appendonly", "yes", "--appendfsync", "always", "--dir", t.TempDir()))
			p := play{
				Addr: srv.Addr(), Kind: kind, Name: unique(t), Goroutines: 4, For: 6 * time.Second, Lease: historyLease,
				Hold: 10 * time.Millisecond, Think: 10 * time.Millisecond, Cancels: 50, ConnectionsAtATime: 20,
				File: t.TempDir() + "/",
			}
			all := troupe(t, p, 4)
			const kills = 3
			for i := range kills {
				<-time.After(p.For / (kills + 3))
				if i == 1 {
					all[3].Kill()
				}
				srv.Restart()
			}
			r := recording{kind: kind, faults: kills + 1}
			for i, w := range all[:3] {
				must(t, w.Wait())
				events, err := eventsIn(fileOf(p.File, i))
				must(t, err)
				r.events = append(r.events, events...)
			}
			for i := range r.events {
				r.events[i].ServerKeeps = serverKeeps(r.events[i], [2]int64{})
			}
			r.requireTraffic(t, 100, kills+1)
			r.check(t)
		})
	}
}

func fileOf(prefix string, process int) string { return fmt.Sprintf("%s%d.json", prefix, process) }

// troupe starts n historians and has them begin at once. p.File is where the names of their files begin.
func troupe(t *testing.T, p play, n int) []*worker.Process {
	t.Helper()
	all, files := make([]*worker.Process, n), p.File
	for i := range all {
		p.Process, p.File = i, fileOf(files, i)
		args, err := json.Marshal(p)
		must(t, err)
		all[i] = worker.Spawn(t, "historian", string(args))
	}
	for _, w := range all {
		if line := nextLine(t, w); line != "ready" {
			t.Fatal(line)
		}
	}
	for _, w := range all {
		_, _ = fmt.Fprintln(w.Stdin, "go")
	}
	return all
}
