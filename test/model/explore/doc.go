// Package explore walks every state of a small model of the protocol: a state is a comparable value, and a model gives its
// successors. It finds a state in which a promise is broken, by the shortest way there, and one from which the work can
// never be finished.
//
//	explore.go  one walk
//	design.go   a model as a table of settings and mutations, and what must come of each
//
// A model's sound rules must hold in every setting. Each mutation leaves one rule out, and must be caught in some setting; else the
// model does not show what the rule is for.
//
// Owner: a walk owns its states; models have no state of their own.
//
// Start reading at Space, then at the models beside this package.
package explore
