"""A car: engine, doors, brakes, climate, tyres, the way to somewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, refused

_TANK_GALLONS = 50
_MILES_A_GALLON = 20
_FULL_BRAKE = 1000
_LITERS_A_GALLON, _GALLONS_A_LITER = 3.78541, 0.264172
_TYRES = (
    "frontLeftTirePressure",
    "frontRightTirePressure",
    "rearLeftTirePressure",
    "rearRightTirePressure",
)
_HEALTHY_TYRES = (30, 35)
_FASTEST, _SPEED_STEP = 120, 5
_PRIVATE = {
    "brakePedalForce": "brakePedalForce",
    "_parkingBrakeForce": "parkingBrakeForce",
    "_slopeAngle": "slopeAngle",
}
"""Defaults that are private attributes, and under which key a configuration sets them."""

_ZIP_CODES = {
    "Rivermist": "83214",
    "Stonebrook": "74532",
    "Maplecrest": "56108",
    "Silverpine": "62947",
    "Shadowridge": "71354",
    "Sunset Valley": "83462",
    "Oakendale": "47329",
    "Willowbend": "52013",
    "Crescent Hollow": "69238",
    "Autumnville": "51479",
    "San Francisco": "94016",
}
_MILES = {
    ("47329", "52013"): 290.0,
    ("47329", "62947"): 1053.0,
    ("51479", "69238"): 630.0,
    ("56108", "62947"): 320.0,
    ("62947", "94016"): 780.0,
    ("71354", "83462"): 450.0,
    ("74532", "83214"): 750.0,
    ("74532", "94016"): 880.0,
    ("83214", "94016"): 980.0,
}


class VehicleControlAPI(Api):
    """Controls of one car."""

    MODULE = "vehicle_control"
    LONG_CONTEXT = True

    @classmethod
    def begin(cls, config: Any, upstream: Any, *, long: bool) -> dict[str, Any]:
        state = super().begin(config, upstream, long=long)
        for default, configured in _PRIVATE.items():
            value = config.get(configured, state.pop(default))
            state["_" + default.removeprefix("_")] = value
        state["engine_state"] = config.get("engineState", "stopped")
        locked = list(state["doorStatus"].values()).count("locked")
        return state | {"remainingUnlockedDoors": 4 - locked}

    @property
    def _is_long(self) -> bool:
        return bool(self.state["long_context"])

    @function()
    def startEngine(self, ignitionMode: Any) -> Any:
        state = self.state
        if ignitionMode == "STOP":  # upstream's slip: it stops, and then goes on to refuse
            state["engine_state"] = "stopped"
        if state["remainingUnlockedDoors"] > 0:
            doors = [door for door, is_ in state["doorStatus"].items() if is_ == "unlocked"]
            listed = f"Here are the unlocked doors: {', '.join(doors)}"
            return refused(f"All doors must be locked before starting the engine. {listed}")
        if state["brakePedalStatus"] != "pressed":
            return refused("Brake pedal needs to be pressed when starting the engine.")
        if state["_brakePedalForce"] != _FULL_BRAKE:
            return refused("Must press the brake fully before starting the engine.")
        if state["fuelLevel"] < 0:
            return refused("Fuel tank is empty.")
        if ignitionMode != "START":
            return refused("Invalid ignition mode.")
        state["engine_state"] = "running"
        return {
            "engineState": state["engine_state"],
            "fuelLevel": state["fuelLevel"],
            "batteryVoltage": state["batteryVoltage"],
        }

    @function()
    def fillFuelTank(self, fuelAmount: Any) -> Any:
        if fuelAmount < 0:
            return refused("Fuel amount cannot be negative.")
        if self.state["fuelLevel"] + fuelAmount > _TANK_GALLONS:
            return refused("Cannot fill gas above the tank capacity.")
        if self.state["fuelLevel"] + fuelAmount < 0:
            return refused("Fuel tank is empty. Min fuel level is 0 gallons.")
        self.state["fuelLevel"] += fuelAmount
        return {"fuelLevel": self.state["fuelLevel"]}

    @function()
    def lockDoors(self, unlock: Any, door: Any) -> Any:
        wanted, other, step = ("unlocked", "locked", 1) if unlock else ("locked", "unlocked", -1)
        doors = self.state["doorStatus"]
        for name in door:
            if doors[name] == other:
                doors[name] = wanted
                self.state["remainingUnlockedDoors"] += step
        left = self.state["remainingUnlockedDoors"]
        return {"lockStatus": wanted, "remainingUnlockedDoors": left}

    @function()
    def adjustClimateControl(
        self, temperature: Any, unit: Any = "celsius", fanSpeed: Any = 50, mode: Any = "auto"
    ) -> Any:
        if not 0 <= fanSpeed <= 100:
            return refused("Fan speed must be between 0 and 100.")
        self.state["acTemperature"] = temperature  # stays, if what follows raises
        if unit == "fahrenheit":
            self.state["acTemperature"] = (temperature - 32) * 5 / 9
        self.state["fanSpeed"] = fanSpeed
        self.state["acMode"] = mode
        return {
            "currentACTemperature": temperature,
            "climateMode": mode,
            "humidityLevel": self.state["humidityLevel"],
        }

    @function()
    def get_outside_temperature_from_google(self) -> Any:
        now = {"outsideTemperature": self.draw("uniform", -10, 40)}
        return self.upstream.long["LONG_WEATHER_EXTENSION"] | now if self._is_long else now

    @function()
    def get_outside_temperature_from_weather_com(self) -> Any:
        return {"error": 404}

    @function()
    def setHeadlights(self, mode: Any) -> Any:
        if mode not in ["on", "off", "auto"]:
            return refused("Invalid headlight mode.")
        self.state["headLightStatus"] = "on" if mode == "on" else "off"
        return {"headlightStatus": self.state["headLightStatus"]}

    @function()
    def displayCarStatus(self, option: Any) -> Any:
        shown: dict[str, Callable[[], Any]] = {
            "fuel": lambda: self._of(fuelLevel="fuelLevel"),
            "battery": lambda: self._of(batteryVoltage="batteryVoltage"),
            "doors": lambda: self._of(doorStatus="doorStatus"),
            "climate": lambda: self._of(
                currentACTemperature="acTemperature",
                fanSpeed="fanSpeed",
                climateMode="acMode",
                humidityLevel="humidityLevel",
            ),
            "headlights": lambda: self._of(headlightStatus="headLightStatus"),
            "parkingBrake": lambda: self._of(
                parkingBrakeStatus="parkingBrakeStatus",
                parkingBrakeForce="_parkingBrakeForce",
                slopeAngle="_slopeAngle",
            ),
            "brakePedal": lambda: self._of(
                brakePedalStatus="brakePedalStatus", brakePedalForce="_brakePedalForce"
            ),
            "engine": lambda: self._of(engineState="engine_state"),
        }
        status = {}
        if self._is_long:
            status["metadata"] = self.upstream.long["CAR_STATUS_METADATA_EXTENSION"]
        if not isinstance(option, str) or option not in shown:
            return status | refused("Invalid option")
        return status | shown[option]()

    def _of(self, **fields: str) -> dict[str, Any]:
        return {name: self.state[key] for name, key in fields.items()}

    @function()
    def activateParkingBrake(self, mode: Any) -> Any:
        if mode not in ["engage", "release"]:
            return refused("Invalid mode")
        status, force = ("engaged", 500.0) if mode == "engage" else ("released", 0.0)
        self.state["parkingBrakeStatus"] = status
        self.state["_parkingBrakeForce"] = force
        self.state["_slopeAngle"] = 10.0
        answer: dict[str, Any] = {}
        if self._is_long:
            answer["parkingBrakeInstruction"] = self.upstream.long["PARKING_BRAKE_INSTRUCTION"]
        return answer | {
            "parkingBrakeStatus": status,
            "_parkingBrakeForce": force,
            "_slopeAngle": 10.0,
        }

    @function()
    def pressBrakePedal(self, pedalPosition: Any) -> Any:
        if not 0 <= pedalPosition <= 1:
            return refused("Pedal position must be between 0 and 1.")
        if pedalPosition == 0:
            return self.releaseBrakePedal()
        self.state["brakePedalStatus"] = "pressed"
        self.state["_brakePedalForce"] = _FULL_BRAKE * pedalPosition
        force = float(_FULL_BRAKE * pedalPosition)
        return {"brakePedalStatus": "pressed", "brakePedalForce": force}

    @function()
    def releaseBrakePedal(self) -> Any:
        self.state["brakePedalStatus"] = "released"
        self.state["_brakePedalForce"] = 0.0
        return {"brakePedalStatus": "released", "brakePedalForce": 0.0}

    @function()
    def setCruiseControl(self, speed: Any, activate: Any, distanceToNextVehicle: Any) -> Any:
        state = self.state
        miles_an_hour, distance = float(speed), float(distanceToNextVehicle)
        if state["engine_state"] == "stopped":
            return refused("Start the engine before activating the cruise control.")
        state["distanceToNextVehicle"] = distance
        if activate and (not 0 <= miles_an_hour <= _FASTEST or miles_an_hour % _SPEED_STEP):
            return refused("Invalid speed")
        state["cruiseStatus"] = "active" if activate else "inactive"
        return {
            "cruiseStatus": state["cruiseStatus"],
            "currentSpeed": miles_an_hour,
            "distanceToNextVehicle": distance,
        }

    @function()
    def get_current_speed(self) -> Any:
        return {"currentSpeed": self.draw("uniform", 0.0, 120.0)}

    @function()
    def display_log(self, messages: Any) -> Any:
        return {"log": messages}

    @function()
    def estimate_drive_feasibility_by_mileage(self, distance: Any) -> Any:
        return {"canDrive": not self.state["fuelLevel"] * _MILES_A_GALLON < distance}

    @function()
    def liter_to_gallon(self, liter: Any) -> Any:
        return {"gallon": liter * _GALLONS_A_LITER}

    @function()
    def gallon_to_liter(self, gallon: Any) -> Any:
        return {"liter": gallon * _LITERS_A_GALLON}

    @function()
    def estimate_distance(self, cityA: Any, cityB: Any) -> Any:
        ways = [miles for ends, miles in _MILES.items() if ends in ((cityA, cityB), (cityB, cityA))]
        miles = next(iter(ways), None)
        unknown = refused("distance not found in database.")
        answer = unknown if miles is None else {"distance": miles}
        if not self._is_long:
            return answer
        return answer | {"intermediaryCities": self.upstream.long["INTERMEDIARY_CITIES"]}

    @function()
    def get_zipcode_based_on_city(self, city: Any) -> Any:
        return {"zipcode": _ZIP_CODES.get(city, "00000") if isinstance(city, str) else "00000"}

    @function()
    def set_navigation(self, destination: Any) -> Any:
        self.state["destination"] = destination
        return {"status": "Navigating to " + destination}

    @function()
    def check_tire_pressure(self) -> Any:
        pressures = {name: self.state[name] for name in _TYRES}
        lowest, highest = _HEALTHY_TYRES
        mean = sum(pressures.values()) / len(pressures)
        about = self.upstream.long["CAR_STATUS_METADATA_EXTENSION"] if self._is_long else {}
        healthy = lowest <= mean <= highest
        return {**pressures, "healthy_tire_pressure": healthy, "car_info": about}

    @function()
    def find_nearest_tire_shop(self) -> Any:
        shop = self.upstream.table(
            self.MODULE, "VehicleControlAPI.find_nearest_tire_shop", "return"
        )
        return dict(shop)
