package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"railyard/rail"
)

// names gives all metrics that there are.
func names(t *testing.T) []string {
	t.Helper()
	w, err := Watch(rail.NewEvents(), prometheus.NewRegistry())
	require.NoError(t, err)
	defer w.Close()
	list := make(chan *prometheus.Desc, 1000)
	Collector(sample).Describe(list)
	for _, c := range w.all() {
		c.Describe(list)
	}
	close(list)
	found := make(map[string]bool)
	for d := range list {
		found[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	var sorted []string
	for name := range found {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

// The table of docs/operations.md names every metric, and no other.
func TestTheManualNamesEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "| metric | labels |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for _, m := range regexp.MustCompile("`(railyard_[a-z_]+)`").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1])
	}
	require.ElementsMatch(t, names(t), told)
}

// every gives the metrics that a text names; histograms without their suffixes.
func every(text string) (list []string) {
	for _, name := range regexp.MustCompile(`railyard_[a-z_]+`).FindAllString(text, -1) {
		if base, ok := strings.CutSuffix(name, "_bucket"); ok {
			name = base
		}
		list = append(list, name)
	}
	return list
}

// The dashboard is what Grafana reads, and asks for metrics that there are.
func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../docs/grafana/railyard.json")
	require.NoError(t, err)
	var board struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	require.Equal(t, "Railyard", board.Title)
	ids := make(map[int]bool)
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], "two panels are number %d", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			require.NotEmpty(t, every(target.Expr), p.Title)
			require.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), p.Title)
		}
	}
	require.Subset(t, names(t), every(string(text)))
}

func TestAlertsAskForWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../docs/alerts.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	known, alerts := names(t), make(map[string]bool)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			require.False(t, alerts[r.Alert], r.Alert)
			alerts[r.Alert] = true
			require.NotEmpty(t, every(r.Expr), r.Alert)
			require.Subset(t, known, every(r.Expr), r.Alert)
			require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.NotEmpty(t, r.Annotations["what_to_do"], r.Alert)
			if r.For != "" {
				_, err := time.ParseDuration(r.For)
				require.NoError(t, err)
			}
			for _, kind := range regexp.MustCompile(`kind="([A-Za-z]+)"`).FindAllStringSubmatch(r.Expr, -1) {
				found := false
				for k := rail.RailUp; k <= rail.RailEnded; k++ {
					found = found || k.String() == kind[1]
				}
				require.True(t, found, kind[1])
			}
		}
	}
	require.Greater(t, len(alerts), 5)
}
