"""Small programs, compiled as plain; see `small_programs`."""

import pytest

from slicing import (
    small_contents,
    small_contexts,
    small_courses,
    small_derivatives,
    small_errors,
    small_forms,
    small_found,
    small_functions,
    small_gradients,
    small_guards,
    small_harmless,
    small_identity,
    small_iterations,
    small_lessons,
    small_lifetimes,
    small_loops,
    small_modes,
    small_names,
    small_numbers,
    small_objects,
    small_one_of,
    small_outside,
    small_positions,
    small_programs,
    small_properties,
    small_real,
    small_through_loops,
    small_training,
    small_values,
    small_views,
    small_words,
    small_worlds,
)
from slicing.comparing import Call, check

ALL = {
    **small_programs.PROGRAMS,
    **small_forms.FORMS,
    **small_functions.PROGRAMS,
    **small_lifetimes.PROGRAMS,
    **small_objects.PROGRAMS,
    **small_one_of.PROGRAMS,
    **small_contents.PROGRAMS,
    **small_guards.PROGRAMS,
    **small_contexts.PROGRAMS,
    **small_harmless.PROGRAMS,
    **small_errors.ERRORS,
    **small_loops.PROGRAMS,
    **small_training.PROGRAMS,
    **small_derivatives.DERIVATIVES,
    **small_through_loops.PROGRAMS,
    **small_real.PROGRAMS,
    **small_courses.PROGRAMS,
    **small_found.PROGRAMS,
    **small_modes.PROGRAMS,
    **small_gradients.PROGRAMS,
    **small_lessons.PROGRAMS,
    **small_values.VALUES,
    **small_outside.PROGRAMS,
    **small_views.PROGRAMS,
    **small_identity.PROGRAMS,
    **small_iterations.PROGRAMS,
    **small_names.PROGRAMS,
    **small_positions.PROGRAMS,
    **small_properties.PROPERTIES,
    **small_numbers.PROGRAMS,
    **small_words.PROGRAMS,
    **small_worlds.PROGRAMS,
}


@pytest.mark.parametrize("name", ALL)
def test_small(name):
    small = ALL[name]
    check(
        small.source,
        *(call if isinstance(call, Call) else Call(call) for call in small.calls),
        sends=small.sends,
        receives=small.receives,
        raises=small.raises,
        native=small.native,
        fallback=small.fallback,
        may_leave=small.may_leave,
    )
