package main

import "os"

func main() { os.Exit(design.Main(os.Args[1:], os.Stdout)) }
