// Package clickhouse connects to a ClickHouse server, or starts or joins the embedded engine. Everything
// above it uses the driver's connections and cannot tell one from the other.
//
// # The embedded engine
//
// The engine library holds all of ClickHouse behind the entry point of `clickhouse local`. A child
// process of our own executable runs it and listens for HTTP on a loopback port that the system
// picks. (Over the native protocol a connection that fails outside a query would abort the
// engine; over HTTP nothing of the kind happens.) Its files are in <data>/engine:
//
//	users.lock    held shared by every process that uses the engine, exclusively by an ending engine
//	engine.lock   held exclusively from before an engine's start until its process is gone
//	address.json  where the engine listens, its process and the name of this run of it
//	password      of the data user; made once, mode 0600
//	VERSION       which engine wrote the data last
//	engine.log    the engine's log from warnings up without any statement, at most two files of 10 MB; engine.out
//	              its raw output
//	store/        the data
//
// # Decision: who starts it, who ends it
//
// Several processes use one data directory, and any of them may be killed at any moment. All
// bookkeeping is therefore in two advisory file locks (flock), which the kernel gives back for the dead:
// there is no count to go wrong and no stale file to clean up.
//
//   - Join: take the users lock, shared. From then on the engine does not end by itself.
//   - Start: whoever gets the engine lock starts an engine and hands the locked descriptor
//     down to it, so the lock is held without a gap until that engine is gone, even when its
//     parent dies in between. Whoever does not get it waits until the engine answers, or until the lock is
//     free because the start failed; then it tries itself and has the error at first hand.
//   - Ready: an engine publishes its address once it has answered, over its own socket, with the name of
//     this run. A joiner asks for that name again, since another program may have been given the port.
//   - Leave: drop the users lock, or die.
//   - End: the engine waits for the users lock, exclusively, and gets it when the last user has gone. It
//     keeps it until its process is gone: who comes meanwhile waits, and then starts a new one.
//   - Die: every user tries the engine lock ten times a second. When the engine dies, one of them gets
//     it and starts another; the pause between further tries grows to 15 s. The connection pools stay: they
//     look the address up with every new connection, and the password is the same for the life of the
//     data directory.
//
// The child has a session of its own and ignores SIGINT, SIGTERM and SIGHUP: a Ctrl-C, or a service
// manager that signals a whole group, must not take the engine from users that are still draining.
//
// Alternatives: a pipe whose last closed end tells the engine to stop does as well, but leaves a moment in
// which a new process can open it while the engine already ends; a count of users in a file is
// wrong after a kill; a daemon that stays would have to be stopped by hand.
package clickhouse
