// Command railyard is the tool: what this host has (info), how fast it is (perf), and what happens when cables
// are pulled (demo failover). Everything is in internal/cli.
package main

import (
	"os"

	"railyard/cmd/railyard/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
