package connect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

func open(t *testing.T, text string, o connect.Options) *connect.Target {
	t.Helper()
	target, err := connect.Open(text, o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return target
}

func TestStandaloneAddresses(t *testing.T) {
	for text, want := range map[string]struct {
		network, addr, user, password string
		db                            int
		tls                           bool
	}{
		"localhost":                          {"tcp", "localhost:6379", "", "", 0, false},
		"localhost:6380":                     {"tcp", "localhost:6380", "", "", 0, false},
		"redis://:6380":                      {"tcp", "localhost:6380", "", "", 0, false},
		"redis://ann:p%40ss@h/2":             {"tcp", "h:6379", "ann", "p@ss", 2, false},
		"rediss://:pw@h:1":                   {"tcp", "h:1", "", "pw", 0, true},
		"redis://[::1]:6380":                 {"tcp", "[::1]:6380", "", "", 0, false},
		"redis://[::1]":                      {"tcp", "[::1]:6379", "", "", 0, false},
		"unix:///run/redis.sock":             {"unix", "/run/redis.sock", "", "", 0, false},
		"unix://ann:pw@/run/redis.sock?db=3": {"unix", "/run/redis.sock", "ann", "pw", 3, false},
	} {
		target := open(t, text, connect.Options{Timeout: time.Second})
		o := target.UniversalClient.(*redis.Client).Options()
		if o.Network != want.network || strings.TrimPrefix(o.Addr, "localhost") != strings.TrimPrefix(want.addr, "localhost") || o.Username != want.user || o.Password != want.password ||
			o.DB != want.db || (o.TLSConfig != nil) != want.tls || o.ReadTimeout != time.Second {
			t.Errorf("%s: %s %s, user %q, password %q, db %d, TLS %v, timeout %v",
				text, o.Network, o.Addr, o.Username, o.Password, o.DB, o.TLSConfig, o.ReadTimeout)
		}
		if strings.Contains(target.Address, "pw") || strings.Contains(target.Address, "ss@") {
			t.Errorf("%s is shown as %s", text, target.Address)
		}
	}
}

func TestSentinelAddress(t *testing.T) {
	target := open(t, "rediss+sentinel://ann:p%2Fw@a,b:7,[::1]/main/3?sentinel_password=s%40", connect.Options{})
	if target.Form != connect.Sentinel || target.Master != "main" || target.Address != "rediss+sentinel://ann@a:26379,b:7,[::1]:26379/main/3" {
		t.Errorf("%s, %s, master %s", target.Address, target.Form, target.Master)
	}
	var addrs []string
	for _, s := range target.Sentinels {
		addrs = append(addrs, s.Addr)
		if s.Password != "s@" || s.TLSConfig == nil {
			t.Errorf("sentinel %+v", s)
		}
	}
	if got := strings.Join(addrs, " "); got != "a:26379 b:7 [::1]:26379" {
		t.Errorf("sentinels %s", got)
	}
	o := target.UniversalClient.(*redis.Client).Options()
	if o.Username != "ann" || o.Password != "p/w" || o.DB != 3 || o.TLSConfig == nil || o.TLSConfig.ServerName != "" {
		t.Errorf("user %q, password %q, db %d, TLS %+v", o.Username, o.Password, o.DB, o.TLSConfig)
	}
}

func TestClusterAddress(t *testing.T) {
	target := open(t, "redis+cluster://ann:pw@a,b:7001", connect.Options{SkipVerify: true, TLS: true})
	o := target.UniversalClient.(*redis.ClusterClient).Options()
	if got := strings.Join(o.Addrs, " "); got != "a:6379 b:7001" || o.Username != "ann" || o.Password != "pw" || !o.TLSConfig.InsecureSkipVerify {
		t.Errorf("%s, user %q, password %q, TLS %+v", got, o.Username, o.Password, o.TLSConfig)
	}
}

func TestBadAddressesSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"http://h":                    "scheme",
		"redis://a,b":                 "redis+cluster",
		"redis+sentinel://a:1":        "mymaster",
		"redis+sentinel://a/m/x":      "database",
		"redis+cluster://a/2":         "has only 0",
		"redis://h?unheard_of=1":      "unheard_of",
		"redis+cluster://h?surprise=": "surprise",
	} {
		if _, err := connect.Open(text, connect.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for o, want := range map[connect.Options]string{
		{SkipVerify: true}:             "--tls",
		{TLS: true, CA: "missing.pem"}: "missing.pem",
		{TLS: true, CA: "connect.go"}:  "no PEM",
	} {
		if _, err := connect.Open("h", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
