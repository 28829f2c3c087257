package main

import "github.com/spf13/cobra"

// A command without a function is a help topic to cobra.

func connectionTopic() *cobra.Command {
	return &cobra.Command{
		Use: "connection", Short: "How to name a Redis: addresses, Sentinel, Cluster, TLS, users",
		Long: `How to name a Redis, with --redis or in the variable REDIS_URL:

  redis://host:6379/0                              one server, database 0
  rediss://user:password@host:6379                 with TLS, as an ACL user
  unix:///run/redis/redis.sock?db=0                through a socket
  redis+sentinel://host1:26379,host2:26379/mymaster[/0]
                                                   the master that Sentinel names
  redis+cluster://host1:6379,host2:6379            a Cluster; some of its nodes are enough
  host:6379                                        short for redis://host:6379

rediss+sentinel and rediss+cluster use TLS. The user and the password are those of the servers; sentinels have their
own in ?sentinel_username=…&sentinel_password=…. Characters like @ / ? in them are written as %40 %2F %3F. Further
options of go-redis may follow the question mark: read_timeout=3s, protocol=2, pool_size=5.

A password on the command line can be seen by all users of the machine: put the address into REDIS_URL.

TLS: --tls-ca FILE names the certificates to trust, --tls-cert and --tls-key are the client's own,
--tls-skip-verify trusts anybody (for a try only).

--prefix (or HOLDFAST_PREFIX) is what the keys start with, by default "holdfast:". It must be that of the services
whose locks are meant: clients exclude each other only with the same prefix.`,
	}
}

func exitStatusTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-status", Short: "What the exit statuses mean",
		Long: `Exit statuses of all commands but run:

    0  it worked, and the answer is good
    1  it failed: Redis could not be reached, or refused
    2  a mistake on the command line
    3  it worked, and the answer is no:
         inspect  nobody holds the name or waits for it
         release  nobody held it, or you said no
         graph    there is a likely deadlock
         doctor   something must be changed (with --strict: or should be)
  130  interrupted

run passes the command's own status on. Besides:

  122  --no-wait: the lock is held by others
  123  the lock was lost while the command ran; the command was ended
  124  --wait: the time was over before the lock was free
  125  run itself failed: a mistake on the command line, or Redis could not be reached or refused
  126  the command cannot be executed
  127  the command was not found
  128+n  the command, or the wait for the lock, was ended by signal n (SIGINT 130, SIGKILL 137, SIGTERM 143)`,
	}
}
