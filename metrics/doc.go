// Package metrics turns a node into Prometheus metrics: Watch counts its events, Collector reads what it is at each scrape. The admin page
// (Config.Admin of package actors) serves both; who has a registry gives them to that:
//
//	m, err := metrics.Watch(node.Events(), prometheus.DefaultRegisterer)
//	defer m.Close()
//	err = prometheus.Register(metrics.Collector(node.Snapshot))
//
// What Watch gives, all with the label "local", the device of this node:
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
// What Collector gives is listed in docs/operations.md and collector.go.
//
// Start reading at Watch and Collector.
package metrics
