// Package cell runs one load with one contender: two processes over loopback, of which one serves and the other drives.
//
//	the one who asks (Run)            the contender's program, twice (Main)
//	  start "serve" ───────────────▶    Contender.Serve    counts what arrives
//	  start "drive" ───────────────▶    Contender.Drive    keeps the load going
//	  mark, time, mark ────────────▶    Tally.mark         bytes, CPU seconds, times
//	  end of the input ────────────▶    the process ends
//
// They talk by lines of JSON over the processes' standard input and output. Every contender is a program of its own, so that each
// has its own heap and scheduler, and all have the same settings: GOGC=100, no memory limit, GOMAXPROCS as the Spec says.
//
// Invariant: what one contender counts, every other counts in the same way: bytes of payload at the end where the load says it is
// over, which is the driver for puts, gets and pings, and the server for messages and streams.
//
// Owner: Run owns both processes; when it returns they are gone.
//
// Start reading at Spec, then Contender and Main, then Run.
package cell
