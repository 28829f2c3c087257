package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// full is how much of maxmemory may be used before acquisitions are near to being refused.
const full = 0.9

// eviction: a lock that is evicted is free while its holder works. Locks have a TTL, so that the volatile policies take
// them, too.
func eviction(n *node) []Finding {
	policy, limit := n.info["maxmemory_policy"], n.info["maxmemory"]
	switch {
	case policy == "":
		return []Finding{{Level: Note, Text: "INFO does not tell the eviction policy"}}
	case policy == "noeviction":
		return []Finding{{Level: OK, Text: "maxmemory-policy noeviction: no lock is evicted"}}
	case limit == "0":
		return []Finding{{
			Level: Warn, Text: "maxmemory-policy " + policy + " would evict locks, but there is no maxmemory",
			Remedy: "CONFIG SET maxmemory-policy noeviction, and in redis.conf",
		}}
	}
	why := "any key, locks too"
	if strings.HasPrefix(policy, "volatile-") {
		why = "keys with a TTL, which locks have"
	}
	return []Finding{{
		Level: Fail, Text: "maxmemory-policy " + policy + " evicts " + why + ": a lock may be free while its holder works",
		Remedy: "CONFIG SET maxmemory-policy noeviction, and in redis.conf; give locks a Redis of their own if this one is a cache",
	}}
}

func memory(n *node) []Finding {
	used, err1 := strconv.ParseFloat(n.info["used_memory"], 64)
	limit, err2 := strconv.ParseFloat(n.info["maxmemory"], 64)
	if err1 != nil || err2 != nil || limit == 0 {
		return nil
	}
	text := fmt.Sprintf("%.0f %% of maxmemory is used", 100*used/limit)
	if used/limit < full {
		return []Finding{{Level: OK, Text: text}}
	}
	return []Finding{{Level: Warn, Text: text + ": new locks are refused when it is full (those held can be renewed and released)", Remedy: "raise maxmemory, or find out what fills it"}}
}
