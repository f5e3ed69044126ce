#pragma once

#include "driver/planning/step_within.h"

#include <map>
#include <string>

namespace tenon {

/// Sets what a user writes: "softmax_cross_entropy,axis=-1,ignore=0,weights=1:2:0.5,reduction=sum"
/// or "huber,delta=0.5". Throws Error (Usage) for words that mean nothing.
void set_loss(LossOptions& options, const std::string& text);
/// "adamw,lr=1e-3,beta1=0.9,beta2=0.999,epsilon=1e-8,weight_decay=0.01,clip=1,loss_scale=auto".
void set_optimizer(TrainOptions& options, const std::string& text);
/// "cosine,warm_up=100,total=5000,floor=0.1" or "step,every=1000,factor=0.1".
void set_schedule(ScheduleOptions& options, const std::string& text);

/// One step of training with such an optimizer and loss ("": the usual one), its symbols bound to
/// the shapes of inputs. Without an optimizer the model itself, which has no states.
StatefulGraph training_step(Graph model, const std::string& optimizer, const std::string& loss,
                            const std::map<std::string, Shape>& shapes);
/// How that step is made in parts of its batch; of a model without an optimizer, not at all.
SplitStep split_training_step(Graph model, const std::string& optimizer, const std::string& loss,
                              const std::map<std::string, Shape>& shapes);

}  // namespace tenon
