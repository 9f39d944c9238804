// Package metrics turns the events of a node into Prometheus metrics. Who does not import it has nothing of it in the program's
// node; who does gives it the node's events and a registry:
//
//	m, err := metrics.Watch(node.Events(), prometheus.DefaultRegisterer)
//	defer m.Close()
//
// What is there, all with the label "local", the device of this node:
//
//	railyard_failover_gap_seconds      how long what a lost rail carried stood still: from the last byte heard on it until other
//	                                   rails could carry the rest
//	railyard_failover_stage_seconds    label "stage": suspicion (suspect until lost), settling (lost until retired), outage (lost
//	                                   until rejoined), probation (rejoined until full weight)
//	railyard_rerouted_bytes_total      what other rails had to carry again
//	railyard_events_total              label "kind" in place of "local": each kind of event (rail.EventKind)
//	railyard_events_missed_total       events that this watcher lost because it was slow; no labels
//
// Owner: a Watcher owns its goroutine and its metrics; Close ends the one and unregisters the others.
//
// Invariants:
//   - a node is never slowed: the watcher reads its subscription, which the node does not wait for;
//   - memory is bounded by the rails that there are: what is remembered of a peer goes with its EndpointDown, and of all
//     peers where events were missed.
//
// Start reading at Watch.
package metrics
