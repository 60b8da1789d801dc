"""How many devices of a machine share one model: the unit that sizing, plan, launch and score speak of."""

from __future__ import annotations

from planner.capacity import SizingSettings, fit_settings
from planner.catalog import Catalog
from planner.fit import footprint
from planner.quantization import quantization
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.splits import valid_tensor_parallel


def unit_of(catalog: Catalog, r: Requirements, plan: ModelPlan, hardware: Hardware) -> SizingSettings:
    """The fewest devices of the machine that hold the requests of the peak, else one request, else one device.

    Raises UnknownName for a model, GPU or format that the catalogue lacks.
    """
    one = SizingSettings()
    if hardware.count == 1:
        return one
    model, gpu, quant = catalog.model(plan.model), catalog.gpu(hardware.gpu), quantization(plan.quantization)
    units = [SizingSettings(tensor_parallel=n) for n in valid_tensor_parallel(model) if n <= hardware.count]
    room = [footprint(model, quant, gpu, fit_settings(r, plan, hardware, u)).requests_that_fit for u in units]
    enough = (u for least in (r.peak_users_max, 1) for u, n in zip(units, room, strict=True) if n >= least)
    return next(enough, one)
