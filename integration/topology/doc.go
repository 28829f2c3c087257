// Package topology gives tests whole Redis deployments on loopback: a master with replicas under Sentinel, and a
// Cluster.
//
//	s := topology.StartSentinel(t)
//	client := s.Client()
//	change := s.Failover()
//
//	c := topology.StartCluster(t)
//	client := c.Client()
//	dead := c.KillMasterOf("key")
//
// Every node is a process of its own, started from the binary that HOLDFAST_SERVER names, else from redis-server or
// valkey-server on PATH, of version 7.0 or later; a sentinel is the same binary with --sentinel. Without a binary the
// test is skipped, or fails if CI=true. All processes end with the test; if it failed, the ends of their logs are
// shown.
//
// Methods fail the test on trouble, so call them from its goroutine.
package topology
