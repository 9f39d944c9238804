package script

import "fmt"

// Default gives the script that the demo runs when it is given none: each fault once, then every
// rail in turn, then all of them together. With 3 rails it takes about 35 s.
func Default(rails int) string {
	return fmt.Sprintf(`wait 2s                      # the load gets going
cut %[1]d reset
wait 1s
heal %[1]d
rejoin %[1]d
wait 500ms
cut %[2]d blackhole
wait 1500ms
heal %[2]d
rejoin %[2]d
wait 500ms
cut %[3]d oneway to-target
wait 1500ms
heal %[3]d
rejoin %[3]d
wait 500ms
cut %[1]d oneway to-source
wait 1500ms
heal %[1]d
rejoin %[1]d
wait 500ms
flap %[2]d 10 200ms
rejoin %[2]d
wait 500ms
turn blackhole 1s            # the rail that Connect used goes first
cut all blackhole            # nobody is left: everything waits
wait 3s
heal all
rejoin all
wait 1s
`, 0, 1%rails, 2%rails)
}
