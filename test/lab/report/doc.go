// Command report cuts real links under a transfer of Railyard, and under MPTCP's beside it, and says whether nobody noticed.
//
//	go run ./test/lab/report                        the whole table, about an hour
//	go run ./test/lab/report --cut blackhole --runs 1 --no-mptcp
//	go run ./test/lab/report --list stripes         the second list: what several rails carry
//	go run ./test/lab/report --list peer            the fourth: peers that stop and die
//	go run ./test/lab/report --list busy --time 2m  the fifth: black holes while other work keeps the cores busy
//
// Words as in lab.Gap: stall, full rate, back in use. A figure is the median of --runs runs, and its limit the bar, times how
// much slower MPTCP is here than where the bars were set, if it is. A cut that misses a bar is tried again: two of three
// attempts count. Zero everywhere, in each single run: puts that failed, of which the target was not told by their
// Notify or told again, bytes that were wrong, endpoints that were given up, rails that lost a life though they were well.
//
// Exit codes: 0 every bar is met, 1 one is missed or a run failed, 2 wrong usage. It needs root (see lab.Enter).
//
// Start reading at bars.go, then main_linux.go.
package main
