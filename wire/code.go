package wire

import "strconv"

// Code is what became of an operation or a counted frame at the target.
type Code uint8

// The codes of verdicts and refusals. Their numbers are part of the protocol.
const (
	CodeOK            Code = iota // all of it is visible
	CodeRevoked                   // the owner took the key back
	CodeBounds                    // outside the region
	CodeRights                    // the key does not allow this
	CodeUnknownRegion             // no such region, or the wrong token
	CodeCanceled                  // the initiator took it back
	CodeTooLarge                  // larger than the target takes
	CodeMalformed                 // the target could not make sense of it
	CodeLimit                     // a bound of the target is reached
	CodeInternal                  // a bug at the target
	codeEnd
)

var codeNames = [codeEnd]string{
	CodeOK:            "OK",
	CodeRevoked:       "Revoked",
	CodeBounds:        "Bounds",
	CodeRights:        "Rights",
	CodeUnknownRegion: "UnknownRegion",
	CodeCanceled:      "Canceled",
	CodeTooLarge:      "TooLarge",
	CodeMalformed:     "Malformed",
	CodeLimit:         "Limit",
	CodeInternal:      "Internal",
}

// Known tells whether c is one of the codes of this version. No parser lets another one pass.
func (c Code) Known() bool { return c < codeEnd }

// String gives the code's name.
func (c Code) String() string {
	if c.Known() {
		return codeNames[c]
	}
	return "Code(" + strconv.Itoa(int(c)) + ")"
}
