package integration

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/topology"
)

// What a message costs the bus of a Cluster: a classic one goes from its node to all others, a sharded one to the
// replicas of its shard. The numbers are in docs/reliability.md.
func TestClusterBusCarriesAMessageToEveryNode(t *testing.T) {
	t.Parallel()
	c := topology.StartCluster(t)
	channel := "holdfast:inbox:" + unique(t)
	node := c.NodeOf(channel)
	const messages = 5000
	grant := strings.Repeat("x", 150) // about the length of one
	rdb := node.Client()
	for _, how := range []struct {
		command, sent string
		copies        int
	}{
		{"PUBLISH", "publish", len(c.Nodes()) - 1},
		{"SPUBLISH", "publishshard", 1},
	} {
		sent, written, began := busSent(t, node, how.sent), bytesWritten(t, node), time.Now()
		pipe := rdb.Pipeline()
		for range messages {
			pipe.Do(t.Context(), how.command, channel, grant)
		}
		_, err := pipe.Exec(t.Context())
		must(t, err)
		took := time.Since(began)
		eventually(t, 20*time.Second, "the bus has sent them", func() bool {
			return busSent(t, node, how.sent)-sent == messages*how.copies
		})
		settled := written
		eventually(t, 20*time.Second, "they have left", func() bool {
			before := settled
			time.Sleep(100 * time.Millisecond)
			settled = bytesWritten(t, node)
			return settled-before < messages // what is left is gossip
		})
		t.Logf("%s: %d copies of each message, %.0f bytes written to the bus for each message, %v of the publisher for %d",
			how.command, how.copies, float64(settled-written)/messages, took.Round(time.Millisecond), messages)
	}
}

// busSent is how many messages of a kind a node has sent to others.
func busSent(t testing.TB, n *topology.Node, kind string) int {
	t.Helper()
	info, err := n.Client().ClusterInfo(t.Context()).Result()
	must(t, err)
	m := regexp.MustCompile(`cluster_stats_messages_` + kind + `_sent:(\d+)`).FindStringSubmatch(info)
	if m == nil {
		return 0
	}
	sent, err := strconv.Atoi(m[1])
	must(t, err)
	return sent
}

// bytesWritten is what a node's process has written so far, to sockets and files; 0 where the system does not tell.
func bytesWritten(t testing.TB, n *topology.Node) int {
	t.Helper()
	info, err := n.Client().Info(t.Context(), "server").Result()
	must(t, err)
	pid := regexp.MustCompile(`process_id:(\d+)`).FindStringSubmatch(info)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/io", pid[1]))
	if err != nil {
		return 0
	}
	written, err := strconv.Atoi(regexp.MustCompile(`wchar: (\d+)`).FindStringSubmatch(string(text))[1])
	must(t, err)
	return written
}
