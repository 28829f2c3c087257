// Package freeport picks TCP ports for servers that tests start.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports below the range from which kernels take the local ports of outgoing
// connections. A port from that range could be lost while its server is down
// for a restart: to any client on the machine, even to one that redials the
// dead server and, on loopback, ends up connected to itself.
const lowest, highest = 15000, 32000

// Pick returns a port on 127.0.0.1 that nobody listens on. Another process may
// take it before the caller does, so a failed bind calls for another Pick.
func Pick() (int, error) {
	for range 100 {
		port := lowest + rand.IntN(highest-lowest)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
