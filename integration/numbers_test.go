package integration

import (
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
)

// Numbers that no script writes: a hold must be one all the same, and the name must heal.
func TestHashWithImpossibleNumbersHeals(t *testing.T) {
	t.Parallel()
	rdb := server.Shared(t).Client()
	client := newClient(t, rdb)
	for _, field := range []string{"used", "exp", "seq", "q", "head", "tail", "vt", "lt", "xt"} {
		for _, value := range []string{"-1", "1e308", "9223372036854775807", "nan"} {
			t.Run(field+" "+value, func(t *testing.T) { damaged(t, client, rdb, unique(t), field, value, "q", "7") })
		}
	}
}
