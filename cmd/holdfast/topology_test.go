//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

func TestSentinelAddress(t *testing.T) {
	t.Parallel()
	set := topology.StartSentinel(t)
	var hosts []string
	for _, n := range set.Sentinels() {
		hosts = append(hosts, n.Addr())
	}
	s := &site{t, "redis+sentinel://" + strings.Join(hosts, ",") + "/" + topology.MasterName, holdfast.DefaultPrefix, set.Client()}
	p := s.start("run", "x", "--", "sh", "-c", "echo ready; read line")
	p.says("ready")
	s.want(0, []string{"ls"}, "mutex", "x")
	s.want(122, []string{"run", "--no-wait", "x", "--", "true"})
	findings := s.doctor(0)
	s.found(findings, "connection", "ok", "redis+sentinel://"+hosts[0])
	s.found(findings, "sentinel", "ok", "3 sentinels watch over mymaster and agree")
	s.found(findings, "replication", "warn", "2 replicas")
	s.found(findings, "clocks", "ok", "the clocks of 3 servers")
	s.found(findings, "latency", "", "a failover takes about ")

	set.Sentinels()[0].Kill()
	s.found(s.doctor(0), "sentinel", "warn", "no answer from "+hosts[0])
	sentinel := *s
	sentinel.url = "redis://" + hosts[1]
	s.found(sentinel.doctor(3), "address", "fail", "redis+sentinel://")
	nobody := *s
	nobody.url = strings.Replace(s.url, topology.MasterName, "nobody", 1)
	nobody.want(1, []string{"ls"}, "cannot reach redis+sentinel://")
	_ = p.in.Close()
	p.ends(1)
}

func TestClusterAddress(t *testing.T) {
	t.Parallel()
	set := topology.StartCluster(t)
	s := &site{t, "redis+cluster://" + set.Nodes()[0].Addr() + "," + set.Nodes()[1].Addr(), holdfast.DefaultPrefix, set.Client()}
	c := s.client("web")
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"} // on all masters
	masters := make(map[*topology.Node]bool)
	for _, n := range names {
		s.lock(c.Mutex(n))
		masters[set.NodeOf(holdfast.DefaultPrefix+"mutex:"+n)] = true
	}
	if len(masters) != 3 {
		t.Fatalf("the names are on %d masters", len(masters))
	}
	for _, args := range [][]string{{"ls", "--json"}, {"ls", "--json", "[a-h]"}} {
		list := fromJSON[[]name](t, s.want(0, args))
		for i, n := range list {
			if len(list) != len(names) || n.Name != names[i] || len(n.Holders) != 1 || *n.Holders[0].HeldFor > 60_000 {
				t.Errorf("%q: %+v", args, list)
				break
			}
		}
	}
	s.want(122, []string{"run", "--no-wait", "a", "--", "true"})
	s.want(0, []string{"run", "x", "--", "true"})
	s.want(0, []string{"inspect", "a"}, "mutex a: 1 holder")
	s.want(0, []string{"release", "--force", "--yes", "a"}, "Released")

	findings := s.doctor(0)
	s.found(findings, "cluster", "ok", "all slots are served, by 3 masters with 3 replicas")
	s.found(findings, "clocks", "ok", "the clocks of 6 servers")
	s.found(findings, "latency", "", "a failover takes about ")
	alone := *s
	alone.url = "redis://" + set.Nodes()[0].Addr()
	s.found(alone.doctor(3), "address", "fail", "redis+cluster://")
	var elsewhere string
	for _, n := range names {
		if set.NodeOf(holdfast.DefaultPrefix+"mutex:"+n) != set.Nodes()[0] {
			elsewhere = n
		}
	}
	alone.want(1, []string{"inspect", "--kind", "mutex", elsewhere}, "this is a Cluster: use redis+cluster://")
}
