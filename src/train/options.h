#pragma once

#include "planning/step_within_budget.h"

#include <map>
#include <string>

namespace tenon::train {

/// Parses "softmax_cross_entropy,axis=-1,ignore=0,weights=1:2:0.5,reduction=sum" or
/// "huber,delta=0.5". Throws Error (Usage) for unknown words.
void set_loss(passes::LossOptions& options, const std::string& text);
/// Parses
/// "adamw,lr=1e-3,beta1=0.9,beta2=0.999,epsilon=1e-8,weight_decay=0.01,clip=1,loss_scale=auto".
void set_optimizer(passes::TrainOptions& options, const std::string& text);
/// Parses "cosine,warm_up=100,total=5000,floor=0.1" or "step,every=1000,factor=0.1".
void set_schedule(passes::ScheduleOptions& options, const std::string& text);

/// Builds a training step with that optimizer and loss ("": the default), with symbols bound to the
/// input shapes. Without an optimizer returns the model itself, which has no states.
passes::StatefulGraph training_step(Graph model, const std::string& optimizer,
                                    const std::string& loss,
                                    const std::map<std::string, Shape>& shapes);
/// Returns the gradient-accumulation builder of that step; an empty one without an optimizer.
planning::SplitStep split_training_step(Graph model, const std::string& optimizer,
                                        const std::string& loss,
                                        const std::map<std::string, Shape>& shapes);

}  // namespace tenon::train
