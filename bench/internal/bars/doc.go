// Package bars measures contenders side by side and holds ratios against bars: what the programs report and scale have in common.
//
// A Row is a load with its bars; a Side of a ratio is one contender with one load. Run builds the contenders' programs, has all
// sides take turns round by round (Books), and prints a line for each bar (Line). It fails where a bar is missed, where
// something could not be measured, and where a bar's feature is missing: no bar is left out in silence.
//
// Invariant: a ratio is the median of the ratios of each round, so that the drift of the machine's speed cancels out.
//
// Owner: Run owns the programs' folder and, through package cell, all processes; they are gone when it returns.
//
// Start reading at Row and Program.
package bars
