package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// maxLag is how far a replica may be behind before a failover to it is sure to lose holds.
const maxLag = 5 // seconds

// persistence: what a restart forgets is free while its holder works, for a third of its lease and a renewal.
func (e *exam) persistence(ctx context.Context, n *node) []Finding {
	if n.info["aof_enabled"] == "1" {
		fsync, known := e.setting(ctx, n, "appendfsync")
		switch {
		case !known:
			return []Finding{{Level: OK, Text: "AOF is on"}}
		case fsync == "no":
			return []Finding{{Level: Warn, Text: "AOF is on with appendfsync no: a crash of the machine loses half a minute of locks", Remedy: "CONFIG SET appendfsync everysec"}}
		case fsync == "always":
			return []Finding{{Level: OK, Text: "AOF is on with appendfsync always: a crash loses nothing"}}
		}
		return []Finding{{Level: OK, Text: "AOF is on with appendfsync " + fsync + ": a crash of the machine loses about a second of locks"}}
	}
	const remedy = "appendonly yes (appendfsync everysec; always loses nothing), or have what locks protect check the fencing token"
	save, known := e.setting(ctx, n, "save")
	switch {
	case known && save == "" && n.info["connected_slaves"] != "0":
		return []Finding{{
			Level: Warn, Text: "nothing is kept on disk: a master that restarts by itself comes back empty, and its replicas empty themselves",
			Remedy: remedy + "; or do not restart masters automatically",
		}}
	case known && save == "":
		return []Finding{{Level: Warn, Text: "nothing is kept on disk: a restart frees every lock while its holder works", Remedy: remedy}}
	}
	return []Finding{{Level: Warn, Text: "AOF is off: a restart frees the locks taken since the last snapshot, if there is one, while their holders work", Remedy: remedy}}
}

// replication: a failover loses what the replica had not seen, and a master that was cut off goes on granting.
func (e *exam) replication(ctx context.Context, n *node) []Finding {
	count, err := strconv.Atoi(n.info["connected_slaves"])
	if err != nil || count == 0 {
		return []Finding{{Level: Note, Text: "no replica: while this server is away, nothing can be locked"}}
	}
	var found []Finding
	for key, value := range n.info {
		fields := pairs(value)
		if !strings.HasPrefix(key, "slave") || fields["ip"] == "" {
			continue
		}
		if lag, err := strconv.Atoi(fields["lag"]); fields["state"] != "online" || err == nil && lag > maxLag {
			found = append(found, Finding{
				Level:  Warn,
				Text:   fmt.Sprintf("replica %s:%s is %s, %s s behind: a failover to it loses locks", fields["ip"], fields["port"], fields["state"], fields["lag"]),
				Remedy: "see INFO replication there, and its network",
			})
		}
	}
	replicas := "1 replica"
	if count > 1 {
		replicas = fmt.Sprint(count, " replicas")
	}
	switch least, known := e.setting(ctx, n, "min-replicas-to-write"); {
	case !known:
		found = append(found, Finding{Level: OK, Text: replicas})
	case least == "0":
		found = append(found, Finding{
			Level: Warn, Text: replicas + ", min-replicas-to-write 0: a master that was cut off goes on granting beside the new one",
			Remedy: "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10; or the option Replicas(1, timeout) where it matters",
		})
	default:
		found = append(found, Finding{Level: OK, Text: replicas + ", min-replicas-to-write " + least})
	}
	return found
}
