/* kprobe.h - the public interface. Each part lies in the room that it is about:
 *
 *   core/kprobe.h          kprobes, and the rules for all handlers
 *   program/program.h      programs in place of handlers
 *   returns/returns.h      return probes and jprobes
 */
#pragma once

#include "probes/core/kprobe.h"
#include "probes/program/program.h"
#include "probes/returns/returns.h"
