package server

// Option changes how Start runs a server.
type Option func(*config)

type config struct {
	args []string // appended to the default arguments, so they win
}

// Args appends command-line arguments, for example "--maxmemory", "10mb".
// They come after the defaults and override them.
func Args(args ...string) Option {
	return func(c *config) { c.args = append(c.args, args...) }
}
