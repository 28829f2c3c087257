package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

// checkServer looks at what kind of server this is, and reports whether it makes sense to go on.
func (e *exam) checkServer() bool {
	seen := false
	for _, n := range e.masters {
		if len(n.info) == 0 {
			continue
		}
		seen = true
		switch mode := cmp.Or(n.info["server_mode"], n.info["redis_mode"]); { // Valkey has its own word
		case mode == "sentinel":
			e.add("address", Fail, "this is a sentinel, which keeps no data", "use redis+sentinel://host:26379/mymaster")
			return false
		case mode == "cluster" && e.Form != connect.Cluster:
			e.add("address", Fail, "this is a node of a Cluster", "use redis+cluster://")
			return false
		case n.info["role"] == "slave" && e.Form == connect.Standalone:
			e.add("address", Fail, "this is a replica: it refuses writes",
				"use the address of its master, "+net.JoinHostPort(n.info["master_host"], n.info["master_port"])+", or Sentinel's")
			return false
		}
	}
	if !seen {
		e.add("info", Note, "INFO is denied: version, eviction, persistence and replication could not be seen", "ask as a user with +info")
		return true
	}
	e.each("version", version)
	return true
}

// version judges what INFO says about the server's version. Valkey tells a version of Redis as well.
func version(n *node) []Finding {
	name, text, least := "Redis", n.info["redis_version"], 7
	if v := n.info["valkey_version"]; v != "" {
		name, text, least = "Valkey", v, 8
	} else if v := n.info["dragonfly_version"]; v != "" {
		return []Finding{{Level: Warn, Text: "Dragonfly " + v + " is not tested with holdfast", Remedy: "use Redis 7 or newer, or Valkey 8 or newer"}}
	}
	major, _, _ := strings.Cut(text, ".")
	number, err := strconv.Atoi(major)
	switch {
	case err != nil:
		return []Finding{{Level: Warn, Text: fmt.Sprintf("unknown version %q", text), Remedy: "use Redis 7 or newer, or Valkey 8 or newer"}}
	case number < least:
		return []Finding{{Level: Fail, Text: fmt.Sprintf("%s %s is too old", name, text), Remedy: fmt.Sprintf("use %s %d or newer", name, least)}}
	}
	return []Finding{{Level: OK, Text: name + " " + text}}
}

// checkCluster looks at whether every key has a master.
func (e *exam) checkCluster(ctx context.Context) {
	cluster, ok := e.UniversalClient.(*redis.ClusterClient)
	if !ok {
		return
	}
	text, err := cluster.ClusterInfo(ctx).Result()
	switch {
	case refused(err):
		e.add("cluster", Note, "CLUSTER INFO is denied", "")
	case err != nil:
		e.add("cluster", Fail, err.Error(), "")
	case !strings.Contains(text, "cluster_state:ok"):
		e.add("cluster", Fail, "the Cluster is not ok: some names cannot be locked", `see "CLUSTER INFO" and "CLUSTER NODES"`)
	default:
		e.add("cluster", OK, fmt.Sprintf("all slots are served, by %d masters with %d replicas", len(e.masters), len(e.replicas)), "")
	}
	if value, ok := e.setting(ctx, e.masters[0], "cluster-node-timeout"); ok {
		e.noteOutage(value)
	}
}

// noteOutage remembers how long a dead master goes unnoticed, in ms. Electing another one takes a second or two more.
func (e *exam) noteOutage(millis string) {
	if n, err := strconv.Atoi(millis); err == nil {
		e.outage = max(e.outage, millisOf(n)+failover)
	}
}
