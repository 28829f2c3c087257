// Package server gives tests a real Redis-compatible server.
//
// Start runs one for a single test, which may pause, kill and flush it.
// Shared hands out one per test process, for tests that only touch keys under
// a prefix of their own.
//
// The server is the first of these that is there:
//
//   - the binary named by HOLDFAST_SERVER (redis-server or valkey-server; a
//     wrapper script must exec it, since signals go to the started process);
//   - redis-server, then valkey-server, on PATH;
//   - a container, if the test imports package container.
//
// With none of them the test is skipped, or fails if CI=true. Processes are
// frozen with SIGSTOP, so the package needs a Unix system.
package server
