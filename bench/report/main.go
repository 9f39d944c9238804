// Report measures Railyard beside what a user would pick instead, in one run, and says whether it is fast enough: it exits with 1
// where a ratio misses its bar, where something could not be measured, and where a bar's feature is missing.
//
//	go run -C bench ./report [--rounds 5] [--time 2s] [--only LOAD] [--json] [--svg FILE] [--markdown FILE]
//
// Start reading at rows.go: it has all loads and bars. Package bars measures them.
package main

import "railyard/bench/internal/bars"

func main() { program().Main() }

func program() bars.Program {
	return bars.Program{Name: "report", Contenders: contenders, Rows: rows(), Extra: (&curve{}).extra()}
}
