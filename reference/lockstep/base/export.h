#pragma once

/// Marks what liblockstep_reference shows to programs and plug-ins; everything else stays hidden, so that a program and
/// the plug-ins it loads share one registry, one current rank and one account (design: shared library, explicit
/// exports).
#define LOCKSTEP_API __attribute__((visibility("default")))
