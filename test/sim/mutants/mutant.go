package main

import "slices"

// mutant is one deliberate bug.
type mutant struct {
	name string
	// rule is the rule of the protocol, or the promise, that it breaks: "14", "P4".
	rule string
	// bug says what is wrong once it is on.
	bug string
	// profile of the simulator that makes its kind of trouble likely; "": worlds as they come.
	profile string
	edits   []edit
}

// edit replaces a text by another in one file. In the new text «on» stands for the question whether the mutant is switched on,
// and «old» for the old text; with the switch off it must do what the old one did.
type edit struct{ file, old, new string }

// The files that are mutated.
const (
	ackFile       = "endpoint/session/ack.go"
	cancelFile    = "endpoint/session/cancel.go"
	controlFile   = "endpoint/session/control.go"
	deliverFile   = "endpoint/session/deliver.go"
	epochFile     = "endpoint/session/epoch.go"
	fillFile      = "endpoint/session/fill.go"
	handshakeFile = "endpoint/session/handshake.go"
	getFile       = "endpoint/session/get.go"
	laneFile      = "endpoint/session/lane.go"
	messageFile   = "endpoint/session/message.go"
	onesidedFile  = "endpoint/session/onesided.go"
	exposedFile   = "endpoint/session/exposed.go"
	operationFile = "endpoint/session/operation.go"
	receiveFile   = "endpoint/session/receive.go"
	sessionFile   = "endpoint/session/session.go"
	retireFile    = "endpoint/session/retire.go"
	targetFile    = "endpoint/session/target.go"
	healthFile    = "rail/health.go"
	planFile      = "rma/plan.go"
	regionFile    = "rma/region.go"
	tableFile     = "rma/table.go"
)

// mutants is the whole list.
func mutants() []mutant {
	return slices.Concat(countMutants, retireMutants, orderMutants, cancelMutants, memoryMutants, getMutants, healthMutants,
		oneSidedMutants, epochMutants)
}
