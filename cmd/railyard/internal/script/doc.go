// Package script is the language in which a run of the failover demo is written: which cable is cut,
// how, when, and when it is healed. It is pure: text in, steps out.
//
// One command a line; '#' starts a comment. A command may begin with "at TIME": it then waits until
// that time since the script began. Otherwise it follows the one before.
//
//	wait TIME                        do nothing for so long
//	cut RAIL reset                   both ends are reset, new connections are refused
//	cut RAIL blackhole               nothing passes, nobody is told
//	cut RAIL oneway to-target        nothing passes in this direction (or to-source)
//	cut RAIL refuse                  what is connected stays, new connections are refused
//	flap RAIL COUNT PERIOD [reset|blackhole]   cut and healed COUNT times, PERIOD each
//	turn reset|blackhole TIME        every rail in turn, the one that Connect used first: cut, TIME, heal, rejoin
//	slow RAIL RATE                   the cable passes no more than RATE, such as 10MB/s
//	delay RAIL TIME                  each byte takes TIME longer
//	heal RAIL                        the cable is whole again
//	detect RAIL                      wait until a node has noticed the rail's cut, 10 s at most
//	rejoin RAIL                      wait until the rail carries work again, 10 s at most
//
// RAIL is a number from 0 on, "first" (the rail that Connect used) or "all". A time is written as in
// 200ms or 1.5s.
//
// Start reading at Parse; Default is the script that the demo runs by itself.
package script
