package connect

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Default ports.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// address is a URL taken apart: net/url has no place for several hosts.
type address struct {
	scheme string // "redis", "rediss" or "unix"
	form   Form
	user   string // "user:password", as escaped in the URL
	hosts  []string
	path   string // without the first slash
	query  url.Values
}

// parse understands redis, rediss and unix URLs, redis+sentinel and redis+cluster with several hosts, and plain
// "host:port".
func parse(text string) (*address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "redis", text
	}
	a := &address{}
	switch base, form, _ := strings.Cut(scheme, "+"); {
	case form == "" && base == "unix", form == "" && (base == "redis" || base == "rediss"):
		a.scheme, a.form = base, Standalone
	case form == "sentinel" && (base == "redis" || base == "rediss"):
		a.scheme, a.form = base, Sentinel
	case form == "cluster" && (base == "redis" || base == "rediss"):
		a.scheme, a.form = base, Cluster
	default:
		return nil, fmt.Errorf("scheme %q: redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster and rediss+cluster are possible", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	var err error
	if a.query, err = url.ParseQuery(query); err != nil {
		return nil, fmt.Errorf("the options after the question mark: %w", err)
	}
	authority, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		a.user, authority = authority[:i], authority[i+1:]
	}
	a.path = path
	port := redisPort
	if a.form == Sentinel {
		port = sentinelPort
	}
	for host := range strings.SplitSeq(authority, ",") {
		if a.scheme != "unix" {
			a.hosts = append(a.hosts, withPort(host, port))
		}
	}
	if a.form == Standalone && len(a.hosts) > 1 {
		return nil, fmt.Errorf("%d hosts need redis+sentinel:// or redis+cluster://", len(a.hosts))
	}
	return a, nil
}

func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// plain is the URL of the first host in the form that go-redis parses, with more of the query.
func (a *address) plain(user, path string, more url.Values) string {
	query := url.Values{}
	for _, values := range []url.Values{a.query, more} {
		for k, v := range values {
			query[k] = append(query[k], v...)
		}
	}
	u := a.scheme + "://"
	if user != "" {
		u += user + "@"
	}
	if len(a.hosts) > 0 {
		u += a.hosts[0]
	}
	u += "/" + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	return u
}

// others lists the hosts after the first, as go-redis wants them in a query.
func (a *address) others() url.Values {
	if len(a.hosts) < 2 {
		return nil
	}
	return url.Values{"addr": a.hosts[1:]}
}

func (a *address) standalone() (*redis.Options, error) {
	return redis.ParseURL(a.plain(a.user, a.path, nil))
}

func (a *address) cluster() (*redis.ClusterOptions, error) {
	if a.path != "" && a.path != "0" {
		return nil, fmt.Errorf("database %q: a Cluster has only 0", a.path)
	}
	return redis.ParseClusterURL(a.plain(a.user, "", a.others()))
}

// sentinel reads "redis+sentinel://user:password@host,host/master/database". The user is that of the servers; sentinels
// have their own in the query, as sentinel_username and sentinel_password.
func (a *address) sentinel() (*redis.FailoverOptions, error) {
	master, db, _ := strings.Cut(a.path, "/")
	if master == "" {
		return nil, fmt.Errorf("the master's name is missing: redis+sentinel://host1:26379,host2:26379/mymaster")
	}
	more := a.others()
	if more == nil {
		more = url.Values{}
	}
	more.Set("master_name", master)
	name, password, _ := strings.Cut(a.user, ":")
	for key, escaped := range map[string]string{"username": name, "password": password} {
		value, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, fmt.Errorf("the %s is not escaped properly", key)
		}
		if value != "" {
			more.Set(key, value)
		}
	}
	sentinel := url.UserPassword(a.query.Get("sentinel_username"), a.query.Get("sentinel_password")).String()
	a.query.Del("sentinel_username")
	a.query.Del("sentinel_password")
	return redis.ParseFailoverURL(a.plain(sentinel, db, more))
}

// String is the address without secrets, for people.
func (a *address) String() string {
	s := a.scheme
	if a.form != Standalone {
		s += "+" + string(a.form)
	}
	s += "://"
	if name, _, _ := strings.Cut(a.user, ":"); name != "" {
		s += name + "@"
	}
	s += strings.Join(a.hosts, ",")
	if a.path != "" {
		s += "/" + a.path
	}
	return s
}
