// Package clickhouse connects to a ClickHouse server, or starts or joins the embedded engine. Everything above it uses
// the driver's connections and is the same for both.
//
// # The embedded engine
//
// The engine library holds all of ClickHouse, with the entry point of `clickhouse local`. A child process of our own
// executable runs it and listens for HTTP on a loopback port that the system picks. It runs an interactive session on a
// terminal that nobody else has: only such a session survives what fails outside a statement, as a connection does that
// breaks off amid a request (schema/decisions/engine-port.md). It ignores SIGPIPE for the same reason. Its files are
// in <data>/engine:
//
//	users.lock    held shared by every process that uses the engine, exclusively by an ending engine
//	engine.lock   held exclusively from before an engine's start until its process is gone
//	config.xml    what it answers on its port and how much memory it may use; written at every start
//	users.xml     who may do what; written at every start
//	address.json  where the engine listens, its process, and the challenge and proof of this run of it
//	password      of the data user; made once
//	VERSION       which engine wrote the data last
//	engine.log    the engine's log from warnings up without any statement, at most two files of 10 MB; engine.out
//	              its raw output
//	history       what was typed into its session: at most the word that ends it
//	reserve       8 MiB that a revocation on a full disk may use
//	backups/      backups that are being made or restored
//	store/        the data
//
// The folder and all in it belong to the user who runs the engine, and are open to nobody else (0700, 0600).
//
// # Decision: who starts it, who ends it
//
// Several processes use one data directory, and any of them may be killed at any time. All bookkeeping is therefore in
// two advisory file locks (flock), which the kernel gives back for the dead: there is no count to go wrong and no stale
// file to clean up.
//
//   - Join: take the users lock, shared. From then on the engine does not end by itself.
//   - Start: whoever gets the engine lock starts an engine and hands the locked descriptor
//     down to it, so the lock is held without a gap until that engine is gone, even when its
//     parent dies in between. Whoever does not get it waits until the engine answers, or until the lock is
//     free because the start failed; then it tries itself and has the error at first hand.
//   - Ready: an engine publishes its address once it has answered over its own socket. A joiner challenges it,
//     since another program may have been given the port.
//   - Leave: drop the users lock, or die.
//   - End: the engine waits for the users lock, exclusively, and gets it when the last user has gone. It
//     keeps it until its process is gone: who comes meanwhile waits, and then starts a new one. It types "exit" to its
//     session, which ends in order; after ten seconds it just exits.
//   - Die: every user tries the engine lock ten times a second. When the engine dies, one of them gets it and starts
//     another at once; only after starts that failed there is a pause, which grows to 15 s. The process that had
//     started the dead engine logs its exit status or signal. The connection pools stay: they read the address for
//     every new connection, and the password is the same for the life of the data directory. Meanwhile new connections
//     wait for three seconds, and what only reads runs again once when its connection died, so that a death costs time
//     and no errors (repeat.go).
//
// The child has a session of its own and ignores SIGINT, SIGTERM and SIGHUP: a Ctrl-C, or a service
// manager that signals a whole group, must not take the engine from users that are still draining.
//
// Alternatives: a pipe whose last closed end stops the engine works as well, but leaves a time in which a new process
// can open it while the engine already ends; a count of users in a file is wrong after a kill; a daemon that stays
// would have to be stopped by hand.
//
// # Decision: who may talk to it
//
// The port is on the loopback interface, which every user of the machine can reach, and the engine has a user
// without a password: its start-up session needs one. Three things keep everybody else out.
//
//   - Lock: the port has two handlers and no default ones. One answers the challenge; the other takes statements,
//     and only with the Authorization header of the data user. Everything else, /ping and the user without a password
//     included, is "There is no handle". A client needs nothing but user and password, as for any other server.
//   - Challenge: each run of an engine has two random strings, in its configuration and in address.json. It answers GET
//     /<instance> with the proof. Every new connection requests that first and sends the password only after the right
//     answer, on the same connection. So a program that took the port of an engine that died learns nothing, and the
//     challenge is of no use to it, since the next engine has another challenge. A new connection costs one more round
//     trip.
//   - Confinement: the data user's grants name what runlens does. What this build allows without a grant (to read any
//     file, to connect when it restores a backup), Landlock refuses to the engine's threads, where the kernel has it:
//     they use no file outside the engine's folder and make no connection. On macOS and on older kernels a client with
//     the password reads what the engine's user can read; so it is not to run as root, and says so when it does.
//
// Alternatives: a secret header of its own would be one more thing to configure in every client, and would still let
// its holder be the user without a password; the password of another run each time would break pools that outlive a
// run; a UNIX-domain socket needs no challenge, but this build listens on none, and a proxy would copy every byte of
// every answer; looking up the owner of the listening socket (/proc/net/tcp) is for Linux only, and true at another
// time than the connection.
package clickhouse
