package main

import (
	"bytes"

	"railyard/endpoint/session"
)

// notifyOf gives our put that the message at the peer is the notification of; nil: it is an ordinary message.
func (a *App) notifyOf(d *session.Delivery) *work {
	if d.Target.S != "notified" {
		return nil
	}
	id, _, _ := identity(d.Payload)
	k := a.byID[id]
	if k == nil || !k.notify {
		a.w.violate("%s: a notification of a put that has none", a.e)
	}
	if !bytes.Equal(d.Payload, k.op.Notify.Payload) || d.Type.S != "note" {
		a.w.violate("%s: the notification has other bytes than were given", k.name())
	}
	return k
}

// arrived: the notification is at the target. All bytes must be visible, nobody may have been told before, and the put must not
// have ended badly.
func (k *work) arrived() {
	w := k.app.w
	k.notified++
	switch {
	case k.notified > 1:
		w.violate("%s is notified twice", k.name())
	case k.completed && k.err == nil && !k.canceled:
		w.violate("%s is notified after its completion", k.name())
	case k.completed && k.err != nil && !k.abandoned:
		w.violate("%s is notified though it ended with: %v", k.name(), k.err)
	case k.slot == nil:
		w.violate("%s is notified; it had to be refused: %v", k.name(), k.evil)
	case !k.completed && !k.slot.visible():
		w.violate("%s is notified before all of its bytes are visible", k.name())
	}
}

// notifyCheck: a put that completed well has been notified; one that was canceled or refused has not.
func (k *work) notifyCheck() {
	w := k.app.w
	switch {
	case !k.notify || k.abandoned:
	case k.err == nil && k.canceled && k.notified == 0:
		// The verdict on a cancel that came too late says that it is being delivered; the delivery may take its time.
		k.app.owed = append(k.app.owed, k)
	case k.err == nil && k.notified != 1:
		w.violate("%s completed, and its notification has not come", k.name())
	case k.err != nil && k.notified != 0:
		w.violate("%s ended with %v, and was notified", k.name(), k.err)
	}
}
