package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// checkSentinels asks each sentinel whom it calls the master.
func (e *exam) checkSentinels(ctx context.Context) {
	if len(e.Sentinels) == 0 {
		return
	}
	var silent []string
	masters := make(map[string]bool)
	known := 0 // sentinels, as those that answer say
	for _, o := range e.Sentinels {
		rdb := redis.NewSentinelClient(o)
		m, err := rdb.Master(ctx, e.Master).Result()
		_ = rdb.Close() // it was only asked
		if err != nil {
			silent = append(silent, fmt.Sprintf("%s (%v)", o.Addr, err))
			continue
		}
		masters[net.JoinHostPort(m["ip"], m["port"])] = true
		var others int
		_, _ = fmt.Sscan(m["num-other-sentinels"], &others) // 0 will be complained about
		known = max(known, others+1)
		e.noteOutage(m["down-after-milliseconds"])
	}
	if len(silent) > 0 {
		e.add("sentinel", Warn, "no answer from "+strings.Join(silent, ", "), "start it, or correct the address")
	}
	switch {
	case len(masters) > 1:
		e.add("sentinel", Fail, fmt.Sprintf("the sentinels name %d different masters", len(masters)), "wait for a failover to end, or see SENTINEL MASTER there")
	case known < 3:
		e.add("sentinel", Warn, fmt.Sprintf("%d sentinels watch over %s: when one fails, nobody fails over", known, e.Master), "run at least three, on machines of their own")
	default:
		e.add("sentinel", OK, fmt.Sprintf("%d sentinels watch over %s and agree", known, e.Master), "")
	}
}
